// Work on the real disk, and on what is reached over the net, for Python: without the GIL, its error as an exception.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/result.h"
#include "world/locations.h"
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

/// The value of `call`, run without the GIL.
template <typename Call>
auto unlocked_or_raise(Call call) {
  auto result = [&] {
    const pybind11::gil_scoped_release released;
    return call();
  }();
  if (!result) raise(result.error());
  return *std::move(result);
}

/// The value of `call`, which is given the disk.
template <typename Call>
auto on_disk(Call call) {
  return unlocked_or_raise([&] {
    const auto world = world::make_real_world();
    return call(world->disk());
  });
}

/// With the GIL, since Python may change the environment.
inline world::RemoteSettings remote_settings_or_raise() {
  auto settings = world::remote_settings([](const char* name) { return std::getenv(name); });
  if (!settings) raise(settings.error());
  return *std::move(settings);
}

/// As `on_disk` for a `path` that may be a URL: `call` is given the places of files.
template <typename Call>
auto on_locations(const std::string& path, Call call) {
  const world::RemoteSettings remote = remote_settings_or_raise();
  auto result = [&] {
    const pybind11::gil_scoped_release released;
    const auto world = world::make_real_world();
    world::Locations locations(world->disk(), world->random(), remote);
    return call(locations);
  }();
  if (!result) raise(Error(result.error().code(), world::without_secrets(result.error().message(), path)));
  return *std::move(result);
}

/// All places of files, for what keeps files open.
struct Places {
  Places() : files(world->disk(), world->random(), remote_settings_or_raise()) {}
  std::unique_ptr<world::World> world = world::make_real_world();
  world::Locations files;
};

/// Two at least: with one, a read could not wait for the disk while a block is checked.
inline unsigned threads() {
  constexpr unsigned kThreadsMax = 8;
  return std::clamp(world::usable_cpus(), 2U, kThreadsMax);
}

}  // namespace holdfast::python
