#include "tensor_files.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "store/tensor_file.h"
#include "tensor_list.h"
#include "world/locations.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;
using store::AlignedBytes;

constexpr unsigned kThreadsMax = 8;

[[noreturn]] void raise(const Error& error) {
  PyObject* kind = PyExc_OSError;
  if (error.code() == Code::BadInput || error.code() == Code::Corrupt) kind = PyExc_ValueError;
  if (error.code() == Code::NotFound) kind = PyExc_FileNotFoundError;
  if (error.code() == Code::Denied) kind = PyExc_PermissionError;
  PyErr_SetString(kind, error.message().c_str());
  throw py::error_already_set();
}

Result<world::RemoteSettings> settings() {
  return world::remote_settings([](const char* name) { return std::getenv(name); });
}

/// Runs `call` on the real disk, and what is reached over the net, without the GIL.
template <typename Call>
auto on_locations(const std::string& path, Call call) {
  auto remote = settings();  // with the GIL, since Python may change the environment
  if (!remote) raise(remote.error());
  auto result = [&] {
    const py::gil_scoped_release released;
    const auto world = world::make_real_world();
    world::Locations locations(world->disk(), world->random(), *remote);
    return call(locations);
  }();
  if (!result) raise(Error(result.error().code(), world::without_secrets(result.error().message(), path)));
  return *std::move(result);
}

unsigned threads() { return std::min(world::usable_cpus(), kThreadsMax); }

py::list listed(const std::vector<store::TensorInfo>& tensors) {
  py::list list;
  for (const store::TensorInfo& each : tensors) {
    list.append(py::make_tuple(each.name, each.dtype, each.shape, each.begin, each.end));
  }
  return list;
}

py::tuple load_tensors(const std::string& path, const std::optional<std::vector<std::string>>& names) {
  auto loaded = on_locations(
      path, [&](world::Locations& files) { return store::load_tensor_file(files, path, names, threads()); });
  const py::list tensors = listed(loaded.tensors);
  return py::make_tuple(loaded.file.header.metadata, tensors, std::make_unique<AlignedBytes>(std::move(loaded.block)));
}

py::tuple tensor_header(const std::string& path) {
  const auto file = on_locations(path, [&](world::Locations& files) { return store::read_tensor_file(files, path); });
  return py::make_tuple(file.header.metadata, listed(file.header.tensors), file.header.data_begin,
                        file.checksums.has_value());
}

bool verify_tensors(const std::string& path) {
  return on_locations(path, [&](world::Locations& files) { return store::verify_tensor_file(files, path, threads()); })
      .checksums.has_value();
}

void save_tensors(const std::string& path, const py::list& tensors, std::map<std::string, std::string> metadata) {
  static std::atomic<unsigned> saves = 0;
  const std::string aside = ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++saves);
  const TensorList given(tensors);
  on_locations(path, [&](world::Locations& files) {
    return store::save_tensor_file(files, path, given.all(), std::move(metadata), threads(), aside);
  });
}

}  // namespace

void bind_tensor_files(py::module_& module) {
  py::class_<AlignedBytes>(module, "Block", py::buffer_protocol()).def_buffer([](AlignedBytes& block) {
    const std::span<std::byte> bytes = block.all();
    return py::buffer_info(reinterpret_cast<std::uint8_t*>(bytes.data()), static_cast<py::ssize_t>(bytes.size()));
  });
  module.def("load_tensors", &load_tensors);
  module.def("tensor_header", &tensor_header);
  module.def("verify_tensors", &verify_tensors);
  module.def("save_tensors", &save_tensors);
  module.def("is_remote", &world::is_remote);
  module.def("shown_location", &world::shown_location);
}

}  // namespace holdfast::python
