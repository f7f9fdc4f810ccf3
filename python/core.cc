// The module holdfast._core: converts, frees the GIL, translates errors; nothing else.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "archive_files.h"
#include "checkpoint_files.h"
#include "checkpoint_folder.h"
#include "fork_twice.h"
#include "gloo_waits.h"
#include "hot_method.h"
#include "run/version.h"
#include "seat.h"
#include "step_hooks.h"
#include "tensor_files.h"
#include "tensor_list.h"

namespace py = pybind11;

namespace holdfast::python {
namespace {

template <typename T>
T or_raise(Result<T> result) {
  if (result) return *std::move(result);
  throw std::runtime_error(result.error().message());
}

/// Runs `call` without the GIL.
template <typename Call>
auto unlocked(Call call) {
  const py::gil_scoped_release released;
  return call();
}

class PyMember {
 public:
  PyMember() {
    auto seat = unlocked([this] { return Seat::take([this](std::uint64_t probe) { answer(probe); }); });
    seat_ = or_raise(std::move(seat));
  }
  ~PyMember() { close(); }

  void close() {
    unlocked([this] { seat_.reset(); });  // waits for what is being written
    saved_.reset();
  }

  std::map<std::string, std::string> park() {
    return or_raise(unlocked([this] { return member().park(); })).env;
  }

  py::dict attach() {
    const run::Assign assign = or_raise(unlocked([this] { return member().attach(); }));
    epoch_ = assign.epoch;
    py::dict place;
    place["rank"] = assign.rank;
    place["local_rank"] = assign.local_rank;
    place["world_size"] = assign.world_size;
    place["epoch"] = assign.epoch;
    place["replacement"] = assign.replacement;
    place["run_id"] = assign.run_id;
    place["seed_hint"] = assign.seed;
    place["checkpoint_every_steps"] = assign.ckpt_every_steps;
    place["checkpoint_every_s"] = 0.0;  // the agent keeps the time, and asks at a boundary
    return place;
  }

  py::dict ready(Step applied) {
    const run::Regroup regroup = or_raise(unlocked([&] { return member().ready(applied); }));
    epoch_ = regroup.epoch;
    py::dict plan;
    plan["epoch"] = regroup.epoch;
    plan["step"] = regroup.step;
    plan["copies"] = regroup.copies;
    plan["checkpoint"] = regroup.checkpoint;
    return plan;
  }

  bool group_error(Epoch epoch, const std::string& text) {
    return or_raise(unlocked([&] { return member().group_error(epoch, text); }));
  }
  bool finished(Step step) {
    return or_raise(unlocked([&] { return member().finished(epoch_, step); }));
  }

  run::KvReply kv(Epoch epoch, run::KvOp op, std::vector<std::string> keys, std::string value = "",
                  std::int64_t number = 0, double timeout_s = 0) {
    run::KvRequest request{.id = 0,
                           .epoch = epoch,
                           .op = op,
                           .keys = std::move(keys),
                           .value = std::move(value),
                           .number = number,
                           .timeout_ms = static_cast<std::int64_t>(timeout_s * 1000)};
    const std::string key = request.keys.empty() ? "" : request.keys.front();
    run::KvReply reply = or_raise(unlocked([&] { return member().kv(std::move(request)); }));
    if (reply.status == run::KvStatus::Closed) {
      throw std::runtime_error("store of epoch " + std::to_string(epoch) + " is closed");
    }
    if (reply.status == run::KvStatus::TimedOut)
      throw std::runtime_error("store: key " + key + " did not come in time");
    if (reply.status == run::KvStatus::Missing) throw std::runtime_error("store: no key " + key);
    return reply;
  }

  bool save(Step step, const std::string& structure, const py::list& tensors) {
    if (member().writing()) return false;
    saved_ = std::make_unique<TensorList>(tensors);
    return unlocked([&] { return member().save(step, structure, saved_->all()); });
  }

  void set_probe(py::function probe) { probe_ = std::move(probe); }
  run::Member& member() {
    if (!seat_) throw std::runtime_error("this member is closed");
    return seat_->member();
  }

 private:
  // On the prober's thread.
  void answer(std::uint64_t probe) {
    const py::gil_scoped_acquire locked;
    std::int64_t sequence = -1;
    std::string stack;
    try {
      if (probe_) std::tie(sequence, stack) = py::cast<std::tuple<std::int64_t, std::string>>(probe_());
    } catch (const std::exception& error) {
      stack = error.what();
    }
    if (seat_) seat_->member().probe_reply(probe, sequence, stack);
  }

  std::unique_ptr<Seat> seat_;
  std::unique_ptr<TensorList> saved_;  ///< keeps the memory of what is being written
  py::function probe_;
  Epoch epoch_ = 0;
};

PyObject* mark(PyMember& self, Arguments arguments) {
  self.member().mark(static_cast<telemetry::Mark>(number(arguments[0])), number(arguments[1]));
  Py_RETURN_NONE;
}

PyObject* broken(PyMember& self, Arguments arguments) {
  return PyBool_FromLong(static_cast<long>(self.member().broken(static_cast<Epoch>(number(arguments[0])))));
}

PyObject* fault(PyMember& self, Arguments arguments) {
  const std::string kind = self.member().fault(number(arguments[0]));
  return PyUnicode_FromStringAndSize(kind.data(), static_cast<Py_ssize_t>(kind.size()));
}

PyObject* boundary(PyMember& self, Arguments arguments) {
  const Step step = number(arguments[0]);
  const bool proposed = self.member().pass(step);
  return PyLong_FromLong(proposed ? or_raise(unlocked([&] { return self.member().boundary(step); })) : 0);
}

void begin_group(run::Member& member, Epoch epoch) {
  GlooWaits::install();
  GlooWaits::group_begin();
  if (member.broken(epoch)) GlooWaits::group_broken();
  member.group_begin(epoch);
}

// Plays a native library that hangs with the interpreter lock held: a scheduled fault.
[[noreturn]] void spin() {
  for (volatile std::uint64_t turns = 0;;) turns = turns + 1;
}

}  // namespace
}  // namespace holdfast::python

PYBIND11_MODULE(_core, module) {
  using namespace holdfast;
  using holdfast::python::PyMember;
  module.doc() = "The core of Holdfast. See _core.pyi.";
  module.attr("version") = run::kVersion;
  python::bind_step_hooks(module);
  python::bind_checkpoint_files(module);
  python::bind_checkpoint_folder(module);
  python::bind_tensor_files(module);
  python::bind_archive_files(module);
  module.def("fork_twice", [] { return python::or_raise(python::fork_twice()); });
  py::class_<python::GlooWaits>(module, "GlooWaits")  // for tests; a member does all of this by itself
      .def_static("install", &python::GlooWaits::install)
      .def_static("group_begin", &python::GlooWaits::group_begin)
      .def_static("group_broken", &python::GlooWaits::group_broken);
  py::class_<PyMember> member(module, "Member");
  python::add_hot<PyMember, python::mark, 2>(member, "mark");
  python::add_hot<PyMember, python::broken, 1>(member, "broken");
  python::add_hot<PyMember, python::fault, 1>(member, "fault");
  python::add_hot<PyMember, python::boundary, 1>(member, "boundary");
  member.def(py::init<>())
      .def("close", &PyMember::close)
      .def("park", &PyMember::park)
      .def("attach", &PyMember::attach)
      .def("ready", &PyMember::ready)
      .def("group_error", &PyMember::group_error)
      .def("finished", &PyMember::finished)
      .def("save", &PyMember::save)
      .def("writing", [](PyMember& self) { return self.member().writing(); })
      .def("set_probe", &PyMember::set_probe)
      .def("spin", [](PyMember&) { python::spin(); })
      .def("phase", [](PyMember& self, int phase,
                       Step step) { self.member().phase(static_cast<telemetry::Phase>(phase), step); })
      .def("failed", [](PyMember& self, const std::string& text) { self.member().failed(text); })
      .def("restored", [](PyMember& self, Epoch epoch, Step step) { self.member().restored(epoch, step); })
      .def("drain", [](PyMember& self) { python::unlocked([&] { self.member().drain(); }); })
      .def("group_begin",
           [](PyMember& self, Epoch epoch) { python::unlocked([&] { python::begin_group(self.member(), epoch); }); })
      .def("group_made",
           [](PyMember& self, Epoch epoch) { python::unlocked([&] { self.member().group_made(epoch); }); })
      .def("kv_set",
           [](PyMember& self, Epoch epoch, std::string key, const py::bytes& value) {
             self.kv(epoch, run::KvOp::Set, {std::move(key)}, std::string(value));
           })
      .def("kv_get",
           [](PyMember& self, Epoch epoch, std::string key, double timeout_s) {
             return py::bytes(self.kv(epoch, run::KvOp::Get, {std::move(key)}, "", 0, timeout_s).value);
           })
      .def("kv_add",
           [](PyMember& self, Epoch epoch, std::string key, std::int64_t value) {
             return self.kv(epoch, run::KvOp::Add, {std::move(key)}, "", value).number;
           })
      .def("kv_check",
           [](PyMember& self, Epoch epoch, std::vector<std::string> keys) {
             return self.kv(epoch, run::KvOp::Check, std::move(keys)).number != 0;
           })
      .def("kv_delete", [](PyMember& self, Epoch epoch, std::string key) {
        return self.kv(epoch, run::KvOp::Delete, {std::move(key)}).number != 0;
      });
}
