#include "tensor_files.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>

#include "store/compression.h"
#include "store/sealed_file.h"
#include "store/tensor_file.h"
#include "tensor_list.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;
using store::AlignedBytes;

constexpr unsigned kThreadsMax = 8;

using OptionalKey = std::optional<std::string>;  // 32 bytes, which holdfast.keys has seen to

std::optional<store::SealKey> seal_key(const OptionalKey& key) {
  if (!key) return std::nullopt;
  return *store::parse_seal_key(as_bytes(*key), true);
}

[[noreturn]] void raise(const Error& error) {
  PyObject* kind = PyExc_OSError;
  if (error.code() == Code::BadInput || error.code() == Code::Corrupt) kind = PyExc_ValueError;
  if (error.code() == Code::NotFound) kind = PyExc_FileNotFoundError;
  if (error.code() == Code::Denied) kind = PyExc_PermissionError;
  PyErr_SetString(kind, error.message().c_str());
  throw py::error_already_set();
}

/// Runs `call` on the real world without the GIL.
template <typename Call>
auto in_world(Call call) {
  auto result = [&] {
    const py::gil_scoped_release released;
    const auto world = world::make_real_world();
    return call(*world);
  }();
  if (!result) raise(result.error());
  return *std::move(result);
}

/// Runs `call` on real files, which are plain ones to it.
template <typename Call>
auto on_files(const OptionalKey& key, Call call) {
  return in_world([&](world::World& world) {
    store::UnsealedFiles files(world.disk(), seal_key(key));
    return call(files);
  });
}

unsigned threads() { return std::min(world::usable_cpus(), kThreadsMax); }

py::list listed(const std::vector<store::TensorInfo>& tensors) {
  py::list list;
  for (const store::TensorInfo& each : tensors) {
    list.append(py::make_tuple(each.name, each.dtype, each.shape, each.begin, each.end));
  }
  return list;
}

py::tuple load_tensors(const std::string& path, const std::optional<std::vector<std::string>>& names,
                       const OptionalKey& key) {
  auto loaded =
      on_files(key, [&](world::FileSource& files) { return store::load_tensor_file(files, path, names, threads()); });
  const py::list tensors = listed(loaded.tensors);
  return py::make_tuple(loaded.file.header.metadata, tensors, std::make_unique<AlignedBytes>(std::move(loaded.block)));
}

py::tuple tensor_header(const std::string& path, const OptionalKey& key) {
  const auto file = on_files(key, [&](world::FileSource& files) { return store::read_tensor_file(files, path); });
  return py::make_tuple(file.header.metadata, listed(file.header.tensors), file.header.data_begin,
                        file.checksums.has_value());
}

bool is_sealed(const std::string& path) {
  return in_world([&](world::World& world) { return store::read_sealed_about(world.disk(), path); }).has_value();
}

bool verify_tensors(const std::string& path, const OptionalKey& key) {
  const auto file =
      on_files(key, [&](world::FileSource& files) { return store::verify_tensor_file(files, path, threads()); });
  return file.checked || file.checksums.has_value();
}

void save_tensors(const std::string& path, const py::list& tensors, std::map<std::string, std::string> metadata,
                  const OptionalKey& key, int level) {
  static std::atomic<unsigned> saves = 0;
  const std::string aside = ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++saves);
  const TensorList given(tensors);
  in_world([&](world::World& world) {
    store::SealedFiles files(world.disk(), {.key = seal_key(key), .level = level}, world.random());
    return store::save_tensor_file(files, path, given.all(), std::move(metadata), threads(), aside);
  });
}

py::bytes parse_key(const std::string& given, bool may_be_raw) {
  const auto key = store::parse_seal_key(as_bytes(given), may_be_raw);
  if (!key) raise(key.error());
  return {reinterpret_cast<const char*>(key->bytes().data()), key->bytes().size()};
}

std::string key_id(const std::string& key) { return store::key_id_text(seal_key(key)->id()); }

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
  module.def("is_sealed", &is_sealed);
  module.def("parse_key", &parse_key);
  module.def("key_id", &key_id);
  module.attr("COMPRESSION_LEVEL_MAX") = store::kCompressionLevelMax;
}

}  // namespace holdfast::python
