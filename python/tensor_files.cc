#include "tensor_files.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>

#include "on_disk.h"
#include "store/tensor_file.h"
#include "tensor_list.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;
using store::AlignedBytes;

py::list listed(const std::vector<store::TensorInfo>& tensors) {
  py::list list;
  for (const store::TensorInfo& each : tensors) {
    list.append(py::make_tuple(each.name, each.dtype, each.shape, each.begin, each.end));
  }
  return list;
}

py::tuple load_tensors(const std::string& path, const std::optional<std::vector<std::string>>& names) {
  auto loaded = on_disk([&](world::Disk& disk) { return store::load_tensor_file(disk, path, names, threads()); });
  const py::list tensors = listed(loaded.tensors);
  return py::make_tuple(loaded.file.header.metadata, tensors, std::make_unique<AlignedBytes>(std::move(loaded.block)));
}

py::tuple tensor_header(const std::string& path) {
  const auto file = on_disk([&](world::Disk& disk) { return store::read_tensor_file(disk, path); });
  return py::make_tuple(file.header.metadata, listed(file.header.tensors), file.header.data_begin,
                        file.checksums.has_value());
}

bool verify_tensors(const std::string& path) {
  return on_disk([&](world::Disk& disk) { return store::verify_tensor_file(disk, path, threads()); })
      .checksums.has_value();
}

void save_tensors(const std::string& path, const py::list& tensors, std::map<std::string, std::string> metadata) {
  static std::atomic<unsigned> saves = 0;
  const std::string aside = ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++saves);
  const TensorList given(tensors);
  on_disk([&](world::Disk& disk) {
    return store::save_tensor_file(disk, path, given.all(), std::move(metadata), threads(), aside);
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
}

}  // namespace holdfast::python
