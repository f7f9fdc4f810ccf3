#include "checkpoint_folder.h"

#include <pybind11/stl.h>

#include "on_disk.h"
#include "shard_record.h"
#include "store/checkpoint_dir.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;

/// (name, why) of checkpoints.
using Told = std::vector<std::pair<std::string, std::string>>;

Told told(const std::vector<store::PassedOver>& passed_over) {
  Told all;
  for (const store::PassedOver& each : passed_over) all.emplace_back(each.checkpoint, each.why);
  return all;
}

class CheckpointFolder {
 public:
  CheckpointFolder(const std::string& path, std::size_t keep) : dir_(places_.files, path, {.keep = keep}) {}

  Epoch highest_epoch() {
    return unlocked_or_raise([&] { return dir_.highest_epoch(); });
  }
  /// What older epochs left unfinished is removed.
  Epoch open_epoch(Epoch at_least) {
    return unlocked_or_raise([&]() -> Result<Epoch> {
      const Epoch epoch = TRY(dir_.open_epoch(at_least), "open an epoch");
      TRY(dir_.remove_partial(), "open an epoch");
      return epoch;
    });
  }
  std::string path_of(Step step, Epoch epoch) const { return dir_.checkpoint_path({.epoch = epoch, .step = step}); }
  Told commit(const std::string& run_id, Step step, Epoch epoch, std::uint32_t world_size, const std::string& structure,
              const std::vector<Record>& shards) {
    store::Manifest manifest{run_id, step, epoch, world_size, structure, {}};
    for (const Record& shard : shards) manifest.shards.push_back(from_record(shard));
    unlocked_or_raise([&] { return dir_.commit(manifest); });
    return told(dir_.last_retention().damaged);
  }
  void discard(Step step, Epoch epoch) {
    unlocked_or_raise([&] { return dir_.discard({.epoch = epoch, .step = step}); });
  }
  /// (epoch, step, why it can't be loaded, or "") of all that are there, newest first.
  std::vector<std::tuple<Epoch, Step, std::string>> all() {
    auto list = [&] {
      const py::gil_scoped_release released;
      return dir_.all();
    }();
    std::vector<std::tuple<Epoch, Step, std::string>> entries;
    if (!list && list.error().code() == Code::NotFound) return entries;
    if (!list) raise(list.error());
    for (const store::ListedCheckpoint& each : list->checkpoints)
      entries.emplace_back(each.id.epoch, each.id.step, each.why);
    return entries;
  }

 private:
  Places places_;
  store::CheckpointDir dir_;
};

void verify_checkpoint(const std::string& dir, std::size_t part, std::size_t parts) {
  Places places;
  unlocked_or_raise([&] { return store::verify_checkpoint(places.files, dir, threads(), {part, parts}); });
}

}  // namespace

void bind_checkpoint_folder(py::module_& module) {
  module.def("verify_checkpoint", &verify_checkpoint);
  py::class_<CheckpointFolder>(module, "CheckpointFolder")
      .def(py::init<const std::string&, std::size_t>())
      .def("highest_epoch", &CheckpointFolder::highest_epoch)
      .def("open_epoch", &CheckpointFolder::open_epoch)
      .def("path_of", &CheckpointFolder::path_of)
      .def("commit", &CheckpointFolder::commit)
      .def("discard", &CheckpointFolder::discard)
      .def("all", &CheckpointFolder::all);
}

}  // namespace holdfast::python
