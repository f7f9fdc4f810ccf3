#include "step_hooks.h"

#include "base/ids.h"
#include "hot_method.h"
#include "telemetry/marks.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;
using telemetry::Mark;

struct StepHooks {
  StepHooks(py::object mark_with, py::object before)
      : mark(std::move(mark_with)), before_optimizer(std::move(before)) {}

  py::object mark;
  py::object before_optimizer;
  Step step = kNoStep;  // kNoStep: outside of a step
  bool ready_seen = false;
  bool began_in_step = false;
  bool began = false;
  bool gradients_pending = false;
};

void write_mark(const StepHooks& hooks, Mark mark) {
  const auto kind = py::reinterpret_steal<py::object>(PyLong_FromLong(static_cast<long>(mark)));
  const auto step = py::reinterpret_steal<py::object>(PyLong_FromLongLong(hooks.step));
  PyObject* arguments[] = {kind.ptr(), step.ptr()};
  const auto done = py::reinterpret_steal<py::object>(PyObject_Vectorcall(hooks.mark.ptr(), arguments, 2, nullptr));
  if (!done) throw py::error_already_set();
}

PyObject* none() { Py_RETURN_NONE; }

PyObject* begin(StepHooks& hooks, Arguments arguments) {
  hooks.step = number(arguments[0]);
  hooks.began_in_step = false;
  hooks.ready_seen = false;
  return none();
}

// What happened in the step, in one answer: an attribute of a bound class is slow to read.
constexpr long kBegan = 1;
constexpr long kPending = 2;
constexpr long kReady = 4;

PyObject* end(StepHooks& hooks, Arguments /*arguments*/) {
  hooks.step = kNoStep;
  if (!hooks.gradients_pending) hooks.began = false;
  return PyLong_FromLong((hooks.began_in_step ? kBegan : 0) | (hooks.gradients_pending ? kPending : 0) |
                         (hooks.ready_seen ? kReady : 0));
}

PyObject* boundary(StepHooks& hooks, Arguments /*arguments*/) {
  hooks.step = kNoStep;
  hooks.began = false;
  hooks.gradients_pending = false;
  return none();
}

PyObject* ready(StepHooks& hooks, Arguments /*parameter*/) {
  hooks.ready_seen = true;
  hooks.gradients_pending = true;
  if (hooks.step != kNoStep) write_mark(hooks, Mark::GradsReady);
  return none();
}

PyObject* before_step(StepHooks& hooks, Arguments /*optimizer, args, kwargs*/) {
  if (hooks.step == kNoStep || hooks.began_in_step) return none();
  const auto done = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(hooks.before_optimizer.ptr()));
  if (!done) throw py::error_already_set();
  write_mark(hooks, Mark::Collected);
  hooks.began_in_step = hooks.began = true;
  return none();
}

PyObject* after_step(StepHooks& hooks, Arguments /*optimizer, args, kwargs*/) {
  hooks.gradients_pending = false;
  if (hooks.step != kNoStep) write_mark(hooks, Mark::Applied);
  return none();
}

}  // namespace

void bind_step_hooks(py::module_& module) {
  py::class_<StepHooks> type(module, "StepHooks");
  type.def(py::init<py::object, py::object>(), py::arg("mark"), py::arg("before_optimizer"))
      .def_readonly("began", &StepHooks::began)
      .def_readwrite("gradients_pending", &StepHooks::gradients_pending);
  type.attr("BEGAN") = kBegan;
  type.attr("PENDING") = kPending;
  type.attr("READY") = kReady;
  add_hot<StepHooks, begin, 1>(type, "begin");
  add_hot<StepHooks, end, 0>(type, "end");
  add_hot<StepHooks, boundary, 0>(type, "boundary");
  add_hot<StepHooks, ready, 1>(type, "ready");
  add_hot<StepHooks, before_step, 3>(type, "before_step");
  add_hot<StepHooks, after_step, 3>(type, "after_step");
}

}  // namespace holdfast::python
