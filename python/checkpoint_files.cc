#include "checkpoint_files.h"

#include <pybind11/stl.h>

#include <string_view>
#include <unordered_map>

#include "on_disk.h"
#include "shard_record.h"
#include "store/background.h"
#include "store/incremental.h"
#include "store/open_checkpoint.h"
#include "tensor_list.h"
#include "world/memory_copy.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;

/// A checkpoint that is committed is never written into again.
Status refuse_committed(world::FileTree& files, const std::string& dir) {
  const std::string manifest = dir + "/" + store::kManifestFile;
  if (files.exists(manifest)) return Error(Code::BadInput, dir + ": this checkpoint is committed; save another step");
  return Ok{};
}

Record write_shard(const std::string& dir, Rank writer, std::uint32_t writers, const py::list& tensors,
                   const std::map<std::string, std::string>& metadata) {
  const TensorList given(tensors);
  Places places;
  return to_record(unlocked_or_raise([&]() -> Result<store::ShardRecord> {
    TRY(refuse_committed(places.files, dir), "write a shard");
    return store::in_background(
        given.all(), [&] { return store::write_shard(places.files, dir, writer, writers, given.all(), metadata); });
  }));
}

/// (name, dtype, shape).
using Kind = std::tuple<std::string, std::string, std::vector<std::uint64_t>>;

/// First byte of each tensor and one past its last, in the data of a shard of them.
using Extents = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Extents shard_places(const std::vector<Kind>& kinds) {
  std::vector<store::TensorInfo> tensors;
  for (const auto& [name, dtype, shape] : kinds) tensors.push_back({name, dtype, shape});
  const auto header = store::lay_out_tensors(std::move(tensors), {});
  if (!header) raise(header.error());
  std::unordered_map<std::string_view, const store::TensorInfo*> by_name;
  for (const store::TensorInfo& tensor : header->tensors) by_name.emplace(tensor.name, &tensor);
  Extents places;
  for (const Kind& kind : kinds) {
    const store::TensorInfo& tensor = *by_name.at(std::get<0>(kind));
    places.emplace_back(tensor.begin, tensor.end);
  }
  return places;
}

/// (to, from, bytes).
using Copy = std::tuple<std::uintptr_t, std::uintptr_t, std::size_t>;

void copy_memory(const std::vector<Copy>& copies, unsigned threads) {
  std::vector<world::MemoryCopy> all;
  all.reserve(copies.size());
  for (const auto& [to, from, bytes] : copies) {
    all.push_back({reinterpret_cast<std::byte*>(to), {reinterpret_cast<const std::byte*>(from), bytes}});
  }
  const py::gil_scoped_release released;
  world::copy_all(all, threads);
}

void write_manifest(const std::string& dir, std::uint32_t world_size, const std::string& structure,
                    const std::vector<Record>& shards) {
  store::Manifest manifest{"", 0, 0, world_size, structure, {}};
  for (const Record& shard : shards) manifest.shards.push_back(from_record(shard));
  on_disk([&](world::Disk& disk) -> Status {
    const std::string path = dir + "/" + store::kManifestFile;
    if (disk.exists(path)) return Error(Code::BadInput, path + ": a checkpoint is here already; choose another folder");
    const std::string text = TRY(store::manifest_to_text(manifest), "write " + path);
    TRY(disk.sync_dir(dir), "commit");
    return world::write_file_atomically(disk, path, as_bytes(text));
  });
}

class OpenCheckpoint {
 public:
  explicit OpenCheckpoint(const std::string& dir)
      : checkpoint_(unlocked_or_raise([&] { return store::OpenCheckpoint::open(places_->files, dir); })) {}
  const store::OpenCheckpoint& core() const { return checkpoint_; }

  Step step() const { return checkpoint_.manifest().step; }
  std::string structure() const { return checkpoint_.manifest().structure; }
  /// Name -> dtype, shape.
  py::dict tensors() const {
    py::dict all;
    for (const auto& [name, tensor] : checkpoint_.tensors()) {
      all[py::str(name)] = py::make_tuple(tensor.dtype, tensor.shape);
    }
    return all;
  }
  /// `wanted`: name, first element, shape, memory. (bytes read, those of them that were checked).
  std::pair<std::uint64_t, std::uint64_t> read(const py::list& wanted) const {
    std::vector<py::buffer_info> held;
    std::vector<store::WantedBox> boxes;
    for (const py::handle& each : wanted) {
      const auto box = py::cast<py::tuple>(each);
      const py::buffer_info& info = held.emplace_back(py::cast<py::buffer>(box[3]).request(/*writable=*/true));
      boxes.push_back({py::cast<std::string>(box[0]),
                       {py::cast<std::vector<std::uint64_t>>(box[1]), py::cast<std::vector<std::uint64_t>>(box[2])},
                       {static_cast<std::byte*>(info.ptr), static_cast<std::size_t>(info.size * info.itemsize)}});
    }
    const store::ReadTally tally = unlocked_or_raise([&] { return checkpoint_.read(boxes, threads()); });
    return {tally.bytes, tally.checked};
  }

 private:
  std::unique_ptr<Places> places_ = std::make_unique<Places>();
  store::OpenCheckpoint checkpoint_;
};

/// Writes one rank's shards, each without what the last committed one holds already.
class IncrementalWriter {
 public:
  Record write(const std::string& dir, Rank writer, std::uint32_t writers, const py::list& tensors,
               const std::map<std::string, std::string>& metadata) {
    const TensorList given(tensors);
    Places places;
    store::IncrementalShard shard = unlocked_or_raise([&]() -> Result<store::IncrementalShard> {
      TRY(refuse_committed(places.files, dir), "write a shard");
      return store::in_background(given.all(), [&] {
        return store::write_incremental_shard(places.files, dir, writer, writers, given.all(), metadata, known_);
      });
    });
    pending_ = std::move(shard.known);
    return to_record(shard.record);
  }
  void committed() { known_ = std::move(pending_); }
  void go_on_from(const OpenCheckpoint& checkpoint) {
    known_ = unlocked_or_raise([&] { return store::KnownParts::of(checkpoint.core()); });
  }
  void forget() { known_ = {}; }

 private:
  store::KnownParts known_, pending_;
};

}  // namespace

void bind_checkpoint_files(py::module_& module) {
  module.def("write_shard", &write_shard);
  module.def("shard_places", &shard_places);
  module.def("copy_memory", &copy_memory);
  module.def("write_manifest", &write_manifest);
  py::class_<OpenCheckpoint>(module, "OpenCheckpoint")
      .def(py::init<const std::string&>())
      .def_property_readonly("step", &OpenCheckpoint::step)
      .def_property_readonly("structure", &OpenCheckpoint::structure)
      .def("tensors", &OpenCheckpoint::tensors)
      .def("read", &OpenCheckpoint::read);
  py::class_<IncrementalWriter>(module, "IncrementalWriter")
      .def(py::init<>())
      .def("write", &IncrementalWriter::write)
      .def("committed", &IncrementalWriter::committed)
      .def("go_on_from", &IncrementalWriter::go_on_from)
      .def("forget", &IncrementalWriter::forget);
}

}  // namespace holdfast::python
