#include "checkpoint_files.h"

#include <pybind11/stl.h>

#include <string_view>
#include <unordered_map>

#include "on_disk.h"
#include "store/checkpoint_dir.h"
#include "store/open_checkpoint.h"
#include "store/shard_in_background.h"
#include "tensor_list.h"
#include "world/memory_copy.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;

/// (file, bytes, CRC32C of the header): what a manifest says of a shard.
using Record = std::tuple<std::string, std::uint64_t, std::uint32_t>;

Record write_shard(const std::string& dir, Rank writer, std::uint32_t writers, const py::list& tensors,
                   const std::map<std::string, std::string>& metadata) {
  const TensorList given(tensors);
  const store::ShardRecord record = on_disk([&](world::Disk& disk) {
    return store::write_shard_in_background(disk, dir, writer, writers, given.all(), metadata);
  });
  return {record.file, record.bytes, record.header_crc};
}

/// (name, dtype, shape).
using Kind = std::tuple<std::string, std::string, std::vector<std::uint64_t>>;

/// First byte of each tensor and one past its last, in the data of a shard of them.
using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Places shard_places(const std::vector<Kind>& kinds) {
  std::vector<store::TensorInfo> tensors;
  for (const auto& [name, dtype, shape] : kinds) tensors.push_back({name, dtype, shape});
  const auto header = store::lay_out_tensors(std::move(tensors), {});
  if (!header) raise(header.error());
  std::unordered_map<std::string_view, const store::TensorInfo*> by_name;
  for (const store::TensorInfo& tensor : header->tensors) by_name.emplace(tensor.name, &tensor);
  Places places;
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
  for (const auto& [file, bytes, crc] : shards) manifest.shards.push_back({file, bytes, crc});
  on_disk([&](world::Disk& disk) -> Status {
    const std::string path = dir + "/" + store::kManifestFile;
    if (disk.exists(path)) return Error(Code::BadInput, path + ": a checkpoint is here already; choose another folder");
    const std::string text = TRY(store::manifest_to_text(manifest), "write " + path);
    TRY(disk.sync_dir(dir), "commit");
    return world::write_file_atomically(disk, path, as_bytes(text));
  });
}

class CheckpointFolder {
 public:
  CheckpointFolder(const std::string& path, std::size_t keep) : dir_(world_->disk(), path, {.keep = keep}) {}

  /// A new one, above all that ever wrote here; what older ones left unfinished is removed.
  Epoch open_epoch() {
    return unlocked_or_raise([&]() -> Result<Epoch> {
      const Epoch epoch = TRY(dir_.highest_epoch(), "open an epoch")
      +1;
      TRY(dir_.fence(epoch), "open an epoch");
      TRY(dir_.remove_partial(), "open an epoch");
      return epoch;
    });
  }
  std::string path_of(Step step, Epoch epoch) const { return dir_.checkpoint_path({.epoch = epoch, .step = step}); }
  void commit(const std::string& run_id, Step step, Epoch epoch, std::uint32_t world_size, const std::string& structure,
              const std::vector<Record>& shards) {
    store::Manifest manifest{run_id, step, epoch, world_size, structure, {}};
    for (const auto& [file, bytes, crc] : shards) manifest.shards.push_back({file, bytes, crc});
    unlocked_or_raise([&] { return dir_.commit(manifest); });
  }
  void discard(Step step, Epoch epoch) {
    unlocked_or_raise([&] { return dir_.discard({.epoch = epoch, .step = step}); });
  }
  /// (step and directory of the newest checkpoint whose every byte verifies, or None; those passed over, and why).
  py::tuple newest() {
    const store::CheckpointSurvey survey = unlocked_or_raise([&] { return dir_.newest(); });
    py::list passed_over;
    for (const store::PassedOver& each : survey.passed_over) {
      passed_over.append(py::make_tuple(each.checkpoint, each.why));
    }
    if (!survey.newest) return py::make_tuple(py::none(), passed_over);
    return py::make_tuple(py::make_tuple(survey.newest->id.step, survey.newest->dir), passed_over);
  }

 private:
  std::unique_ptr<world::World> world_ = world::make_real_world();
  store::CheckpointDir dir_;
};

class OpenCheckpoint {
 public:
  explicit OpenCheckpoint(const std::string& dir)
      : checkpoint_(unlocked_or_raise([&] { return store::OpenCheckpoint::open(world_->disk(), dir); })) {}

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
  std::unique_ptr<world::World> world_ = world::make_real_world();
  store::OpenCheckpoint checkpoint_;
};

}  // namespace

void bind_checkpoint_files(py::module_& module) {
  module.def("write_shard", &write_shard);
  module.def("shard_places", &shard_places);
  module.def("copy_memory", &copy_memory);
  module.def("write_manifest", &write_manifest);
  py::class_<CheckpointFolder>(module, "CheckpointFolder")
      .def(py::init<const std::string&, std::size_t>())
      .def("open_epoch", &CheckpointFolder::open_epoch)
      .def("path_of", &CheckpointFolder::path_of)
      .def("commit", &CheckpointFolder::commit)
      .def("discard", &CheckpointFolder::discard)
      .def("newest", &CheckpointFolder::newest);
  py::class_<OpenCheckpoint>(module, "OpenCheckpoint")
      .def(py::init<const std::string&>())
      .def_property_readonly("step", &OpenCheckpoint::step)
      .def_property_readonly("structure", &OpenCheckpoint::structure)
      .def("tensors", &OpenCheckpoint::tensors)
      .def("read", &OpenCheckpoint::read);
}

}  // namespace holdfast::python
