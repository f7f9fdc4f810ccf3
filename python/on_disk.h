// Work on the real disk for Python: without the GIL, its error as an exception.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>

#include "base/result.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::python {

/// ValueError for a bad file, FileNotFoundError, PermissionError, OSError.
[[noreturn]] inline void raise(const Error& error) {
  PyObject* kind = PyExc_OSError;
  if (error.code() == Code::BadInput || error.code() == Code::Corrupt) kind = PyExc_ValueError;
  if (error.code() == Code::NotFound) kind = PyExc_FileNotFoundError;
  if (error.code() == Code::Denied) kind = PyExc_PermissionError;
  PyErr_SetString(kind, error.message().c_str());
  throw pybind11::error_already_set();
}

/// The value of `call`, which is given the disk.
template <typename Call>
auto on_disk(Call call) {
  auto result = [&] {
    const pybind11::gil_scoped_release released;
    const auto world = world::make_real_world();
    return call(world->disk());
  }();
  if (!result) raise(result.error());
  return *std::move(result);
}

inline unsigned threads() {
  constexpr unsigned kThreadsMax = 8;
  return std::min(world::usable_cpus(), kThreadsMax);
}

}  // namespace holdfast::python
