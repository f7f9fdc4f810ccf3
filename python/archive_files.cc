#include "archive_files.h"

#include <pybind11/stl.h>

#include "on_disk.h"
#include "store/archive.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;
using store::AlignedBytes;
using Secret = std::optional<std::string>;

std::string archive_kind(const std::string& path) {
  return on_disk([&](world::Disk& disk) { return store::archive_kind(disk, path); });
}

py::tuple load_archive(const std::string& path, const std::optional<std::vector<std::string>>& names,
                       const std::optional<py::bytes>& key) {
  const Secret secret = key ? Secret(std::string(*key)) : Secret();
  auto loaded = on_disk([&](world::Disk& disk) -> Result<store::LoadedArchive> {
    auto archive = store::open_archive(disk, path, secret);
    if (!archive) return std::move(archive).error();
    return store::load_archive(**archive, names, threads());
  });
  py::list tensors;
  for (const store::TensorInfo& each : loaded.tensors) {
    tensors.append(py::make_tuple(each.name, each.dtype, each.shape, each.begin, each.end));
  }
  return py::make_tuple(tensors, loaded.tied, std::make_unique<AlignedBytes>(std::move(loaded.block)));
}

bool verify_archive(const std::string& path, const std::optional<py::bytes>& key) {
  const Secret secret = key ? Secret(std::string(*key)) : Secret();
  return on_disk([&](world::Disk& disk) -> Result<bool> {
    auto archive = store::open_archive(disk, path, secret);
    if (!archive) return std::move(archive).error();
    if (Status done = store::verify_archive(**archive, threads()); !done) return std::move(done).error();
    return (*archive)->has_checksums();
  });
}

}  // namespace

void bind_archive_files(py::module_& module) {
  module.def("archive_kind", &archive_kind);
  module.def("load_archive", &load_archive);
  module.def("verify_archive", &verify_archive);
}

}  // namespace holdfast::python
