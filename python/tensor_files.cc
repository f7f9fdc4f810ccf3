#include "tensor_files.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "on_disk.h"
#include "store/compression.h"
#include "store/dtype.h"
#include "store/model.h"
#include "store/model_writer.h"
#include "store/sealed_file.h"
#include "store/shard_plan.h"
#include "store/tensor_file.h"
#include "store/tensor_slices.h"
#include "store/tensor_stream.h"
#include "tensor_list.h"
#include "world/locations.h"
#include "world/memory_pool.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;
using store::AlignedBytes;

using OptionalKey = std::optional<std::string>;  // 32 bytes, which holdfast.keys has seen to

std::optional<store::SealKey> seal_key(const OptionalKey& key) {
  if (!key) return std::nullopt;
  return *store::parse_seal_key(as_bytes(*key), true);
}

/// As on_locations, whose files are plain ones to `call`.
template <typename Call>
auto on_files(const std::string& path, const OptionalKey& key, Call call) {
  return on_locations(path, [&](world::Locations& sealed) {
    store::UnsealedFiles files(sealed, seal_key(key));
    return call(files);
  });
}

py::list listed(const std::vector<store::TensorInfo>& tensors) {
  py::list list;
  for (const store::TensorInfo& each : tensors) {
    list.append(py::make_tuple(each.name, each.dtype, each.shape, each.begin, each.end));
  }
  return list;
}

/// Bytes that have been read or written, for whoever draws a bar.
using Counter = std::atomic<std::uint64_t>;

py::tuple loaded_tuple(store::LoadedTensors loaded) {
  const py::list tensors = listed(loaded.tensors);
  return py::make_tuple(loaded.file.header.metadata, tensors, std::make_unique<AlignedBytes>(std::move(loaded.block)));
}

py::tuple load_tensors(const std::string& path, const std::optional<std::vector<std::string>>& names,
                       const OptionalKey& key, bool checked, Counter* done) {
  const store::ReadPolicy policy{.threads = threads(), .checked = checked, .done = done};
  return loaded_tuple(on_files(
      path, key, [&](world::FileSource& files) { return store::load_tensor_file(files, path, names, policy); }));
}

using SliceOf = std::pair<std::string, std::vector<std::pair<std::uint64_t, std::uint64_t>>>;

py::tuple load_slices(const std::string& path, const std::vector<SliceOf>& given, const OptionalKey& key, bool checked,
                      Counter* done) {
  const store::ReadPolicy policy{.threads = threads(), .checked = checked, .done = done};
  std::vector<store::TensorSlice> slices;
  for (const auto& [name, ranges] : given) {
    store::Box box;
    for (const auto& [begin, end] : ranges) {
      box.begin.push_back(begin);
      box.shape.push_back(end - begin);
    }
    slices.push_back({name, std::move(box)});
  }
  return loaded_tuple(on_files(
      path, key, [&](world::FileSource& files) { return store::load_tensor_slices(files, path, slices, policy); }));
}

void load_into(const std::string& path, const py::list& tensors, const OptionalKey& key, bool checked, Counter* done) {
  const store::ReadPolicy policy{.threads = threads(), .checked = checked, .done = done};
  std::vector<py::buffer_info> held;
  std::vector<store::TensorPlacement> places;
  for (const py::handle& each : tensors) {
    const auto tensor = py::cast<py::tuple>(each);
    const py::buffer_info& info = held.emplace_back(py::cast<py::buffer>(tensor[3]).request(/*writable=*/true));
    places.push_back(
        {py::cast<std::string>(tensor[0]), py::cast<std::string>(tensor[1]),
         py::cast<std::vector<std::uint64_t>>(tensor[2]),
         std::span(static_cast<std::byte*>(info.ptr), static_cast<std::size_t>(info.size * info.itemsize))});
  }
  on_files(path, key, [&](world::FileSource& files) { return store::load_tensors_into(files, path, places, policy); });
}

/// A stream and where its file is.
class Stream {
 public:
  Stream(const std::string& path, const std::optional<std::vector<std::string>>& names, std::uint64_t window_bytes,
         bool checked, const OptionalKey& key)
      : locations_(world_->disk(), world_->random(), remote_settings_or_raise()), files_(locations_, seal_key(key)) {
    stream_ = unlocked_or_raise([&] {
      return store::TensorStream::open(files_, path, names,
                                       {.window_bytes = window_bytes, .threads = threads(), .checked = checked});
    });
  }

  ~Stream() {
    const py::gil_scoped_release released;
    stream_.reset();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::map<std::string, std::string> metadata() const { return stream_->about().header.metadata; }

  /// (name, dtype, shape, first byte, one past the last), block; None at the end.
  py::object next() {
    auto next = [&] {
      const py::gil_scoped_release released;
      return stream_->next();
    }();
    if (!next) raise(next.error());
    if (!*next) return py::none();
    const store::TensorInfo& tensor = (*next)->tensor;
    return py::make_tuple(py::make_tuple(tensor.name, tensor.dtype, tensor.shape, tensor.begin, tensor.end),
                          std::make_unique<AlignedBytes>(std::move((*next)->memory)));
  }

  void stop() { stream_->stop(); }

 private:
  std::unique_ptr<world::World> world_ = world::make_real_world();
  world::Locations locations_;
  store::UnsealedFiles files_;
  std::unique_ptr<store::TensorStream> stream_;  ///< ends before what it reads from
};

py::tuple tensor_header(const std::string& path, const OptionalKey& key) {
  const auto file = on_files(path, key, [&](world::FileSource& files) { return store::read_tensor_file(files, path); });
  return py::make_tuple(file.header.metadata, listed(file.header.tensors), file.header.data_begin,
                        file.checksums.has_value());
}

bool is_sealed(const std::string& path) {
  return on_locations(path, [&](world::Locations& files) { return store::read_sealed_about(files, path); }).has_value();
}

bool verify_tensors(const std::string& path, const OptionalKey& key) {
  const auto file =
      on_files(path, key, [&](world::FileSource& files) { return store::verify_tensor_file(files, path, threads()); });
  return file.checked || file.checksums.has_value();
}

std::string aside_name() {
  static std::atomic<unsigned> saves = 0;
  return ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++saves);
}

void save_tensors(const std::string& path, const py::list& tensors, std::map<std::string, std::string> metadata,
                  const OptionalKey& key, int level, Counter* done) {
  const std::string aside = aside_name();
  const TensorList given(tensors);
  const auto world = world::make_real_world();
  on_locations(path, [&](world::Locations& plain) {
    store::SealedFiles files(plain, {.key = seal_key(key), .level = level}, world->random());
    return store::save_tensor_file(files, path, given.all(), std::move(metadata), threads(), aside, done);
  });
}

/// (path, tensors with their places) of each file.
py::list model_files(const std::string& path) {
  const auto model =
      on_locations(path, [&](world::Locations& files) { return store::Model::open(files, path, threads()); });
  py::list listing;
  for (const store::ModelFile& file : model.files()) {
    const store::SafetensorsHeader& header = file.tensors.about().header;
    listing.append(py::make_tuple(file.tensors.path(), header.metadata, listed(header.tensors)));
  }
  return listing;
}

bool verify_model(const std::string& path) {
  return on_locations(path, [&](world::Locations& files) -> Result<bool> {
    auto model = store::Model::open(files, path, threads());
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
    writer_.emplace(unlocked_or_raise([&] {
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
    unlocked_or_raise([&] { return writer_->write(file, given.all(), threads()); });
  }
  void commit() {
    unlocked_or_raise([&] { return writer_->commit(); });
  }
  /// What was written and not committed is removed.
  void close() { writer_.reset(); }

 private:
  std::unique_ptr<world::World> world_;
  std::optional<store::ModelWriter> writer_;  ///< destroyed before its disk
};
py::bytes parse_key(const std::string& given, bool may_be_raw) {
  const auto key = store::parse_seal_key(as_bytes(given), may_be_raw);
  if (!key) raise(key.error());
  return {reinterpret_cast<const char*>(key->bytes().data()), key->bytes().size()};
}

std::string key_id(const std::string& key) { return store::key_id_text(seal_key(key)->id()); }

}  // namespace

void bind_tensor_files(py::module_& module) {
  py::class_<AlignedBytes>(module, "Block", py::buffer_protocol())
      .def(py::init<std::size_t>())
      .def_buffer([](AlignedBytes& block) {
        const std::span<std::byte> bytes = block.all();
        return py::buffer_info(reinterpret_cast<std::uint8_t*>(bytes.data()), static_cast<py::ssize_t>(bytes.size()));
      });
  py::class_<Counter>(module, "Counter")
      .def(py::init([] { return std::make_unique<Counter>(0); }))
      .def("value", [](const Counter& counter) { return counter.load(); });
  py::class_<Stream>(module, "Stream")
      .def(py::init<const std::string&, const std::optional<std::vector<std::string>>&, std::uint64_t, bool,
                    const OptionalKey&>())
      .def("metadata", &Stream::metadata)
      .def("next", &Stream::next)
      .def("stop", &Stream::stop);
  module.def("load_tensors", &load_tensors, py::arg(), py::arg(), py::arg() = std::nullopt, py::arg() = true,
             py::arg() = nullptr);
  module.def("load_slices", &load_slices);
  module.def("load_into", &load_into);
  module.def("keep_memory", [](std::uint64_t bytes) { world::memory_pool().keep_at_most(bytes); });
  module.def("kept_memory", [] { return world::memory_pool().kept_bytes(); });
  module.def("tensor_header", &tensor_header, py::arg(), py::arg() = std::nullopt);
  module.def("verify_tensors", &verify_tensors);
  module.def("save_tensors", &save_tensors, py::arg(), py::arg(), py::arg(), py::arg() = std::nullopt, py::arg() = 0,
             py::arg() = nullptr);
  module.def("is_remote", &world::is_remote);
  module.def("shown_location", &world::shown_location);
  module.def("model_files", &model_files);
  module.def("verify_model", &verify_model);
  py::class_<ModelSave>(module, "ModelSave")
      .def(py::init<const std::string&, const ModelSave::Kinds&, store::Aliases, std::map<std::string, std::string>,
                    const std::string&>())
      .def("plan", &ModelSave::plan)
      .def("write", &ModelSave::write)
      .def("commit", &ModelSave::commit)
      .def("close", &ModelSave::close);
  module.def("is_sealed", &is_sealed);
  module.def("parse_key", &parse_key);
  module.def("key_id", &key_id);
  module.attr("COMPRESSION_LEVEL_MAX") = store::kCompressionLevelMax;
}

}  // namespace holdfast::python
