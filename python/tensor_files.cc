#include "tensor_files.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>

#include "store/dtype.h"
#include "store/model.h"
#include "store/model_writer.h"
#include "store/shard_plan.h"
#include "store/tensor_file.h"
#include "tensor_list.h"
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

/// The value of `call`, run without the GIL.
template <typename Call>
auto unlocked(Call call) {
  auto result = [&] {
    const py::gil_scoped_release released;
    return call();
  }();
  if (!result) raise(result.error());
  return *std::move(result);
}

/// Runs `call` on the real disk without the GIL.
template <typename Call>
auto on_disk(Call call) {
  return unlocked([&] {
    const auto world = world::make_real_world();
    return call(world->disk());
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

std::string aside_name() {
  static std::atomic<unsigned> saves = 0;
  return ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++saves);
}

void save_tensors(const std::string& path, const py::list& tensors, std::map<std::string, std::string> metadata) {
  const std::string aside = aside_name();
  const TensorList given(tensors);
  on_disk([&](world::Disk& disk) {
    return store::save_tensor_file(disk, path, given.all(), std::move(metadata), threads(), aside);
  });
}

/// (path, tensors with their places) of each file.
py::list model_files(const std::string& path) {
  const auto model = on_disk([&](world::Disk& disk) { return store::Model::open(disk, path, threads()); });
  py::list files;
  for (const store::ModelFile& file : model.files()) {
    const store::SafetensorsHeader& header = file.tensors.about().header;
    files.append(py::make_tuple(file.tensors.path(), header.metadata, listed(header.tensors)));
  }
  return files;
}

bool verify_model(const std::string& path) {
  return on_disk([&](world::Disk& disk) -> Result<bool> {
    auto model = store::Model::open(disk, path, threads());
    if (!model) return std::move(model).error();
    if (Status good = model->verify(threads()); !good) return std::move(good).error();
    return model->has_checksums();
  });
}

/// A model being saved into a folder, file by file.
class ModelSave {
 public:
  /// `kinds`: name, dtype and shape of each tensor.
  using Kinds = std::vector<std::tuple<std::string, std::string, std::vector<std::uint64_t>>>;
  ModelSave(const std::string& folder, const Kinds& kinds, store::Aliases aliases,
            std::map<std::string, std::string> metadata, const std::string& bytes_max)
      : world_(world::make_real_world()) {
    store::ModelContent content;
    std::vector<std::uint64_t> sizes;
    for (const auto& [name, dtype, shape] : kinds) {
      content.tensors.push_back({name, dtype, shape});
      auto bytes = store::tensor_bytes(dtype, shape);
      if (!bytes) raise(std::move(bytes).error().in(name));
      sizes.push_back(*bytes);
    }
    content.aliases = std::move(aliases);
    content.metadata = std::move(metadata);
    const auto largest = store::parse_byte_size(bytes_max);
    if (!largest) raise(largest.error());
    content.plan = store::cut_by_size(sizes, *largest);
    writer_.emplace(unlocked([&] {
      return store::ModelWriter::begin(store::ModelPlace(world_->disk()), folder, std::move(content), aside_name());
    }));
  }
  /// Which tensors go into each file.
  std::vector<std::vector<std::size_t>> plan() const {
    std::vector<std::vector<std::size_t>> plan;
    for (std::size_t file = 0; file < writer_->files(); ++file) plan.push_back(writer_->tensors(file));
    return plan;
  }
  void write(std::size_t file, const py::list& tensors) {
    const TensorList given(tensors);
    unlocked([&] { return writer_->write(file, given.all(), threads()); });
  }
  void commit() {
    unlocked([&] { return writer_->commit(); });
  }
  /// What was written and not committed is removed.
  void close() { writer_.reset(); }

 private:
  std::unique_ptr<world::World> world_;
  std::optional<store::ModelWriter> writer_;  ///< destroyed before its disk
};

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
  module.def("model_files", &model_files);
  module.def("verify_model", &verify_model);
  py::class_<ModelSave>(module, "ModelSave")
      .def(py::init<const std::string&, const ModelSave::Kinds&, store::Aliases, std::map<std::string, std::string>,
                    const std::string&>())
      .def("plan", &ModelSave::plan)
      .def("write", &ModelSave::write)
      .def("commit", &ModelSave::commit)
      .def("close", &ModelSave::close);
}

}  // namespace holdfast::python
