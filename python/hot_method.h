// Methods of bound classes without pybind11's dispatch, which takes several times as long as what the step loop calls
// at every step.
#pragma once

#include <pybind11/pybind11.h>

#include <span>
#include <stdexcept>
#include <string>

namespace holdfast::python {

using Arguments = std::span<PyObject* const>;

/// What a `py::class_<Bound>` instance holds, without the look-up of types in a cast. Throws where __init__ did not
/// run.
template <typename Bound>
Bound& bound(PyObject* self) {
  auto* held = reinterpret_cast<pybind11::detail::instance*>(self)->simple_value_holder[0];
  if (held == nullptr) throw std::runtime_error("__init__ did not run");
  return *static_cast<Bound*>(held);
}

/// Throws pybind11::error_already_set (TypeError, OverflowError).
inline std::int64_t number(PyObject* argument) {
  const std::int64_t value = PyLong_AsLongLong(argument);
  if (value == -1 && PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
  return value;
}

template <typename Bound, auto Body, Py_ssize_t Count>
PyObject* call_hot(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != Count) {
    PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", Count, count);
    return nullptr;
  }
  try {
    return Body(bound<Bound>(self), Arguments(arguments, static_cast<std::size_t>(count)));
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

/// Adds a method of `Count` positional arguments to the type. `Body`: (Bound&, Arguments) -> new reference, or throws.
template <typename Bound, auto Body, Py_ssize_t Count>
void add_hot(pybind11::class_<Bound>& type, const char* name) {
  const _PyCFunctionFast function = &call_hot<Bound, Body, Count>;
  static PyMethodDef method = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
                               METH_FASTCALL, nullptr};
  PyObject* descriptor = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method);
  if (descriptor == nullptr) throw pybind11::error_already_set();
  type.attr(name) = pybind11::reinterpret_steal<pybind11::object>(descriptor);
}

}  // namespace holdfast::python
