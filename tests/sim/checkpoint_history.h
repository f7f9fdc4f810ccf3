// What a run did to its checkpoint directory, and the judge of what a crash made of it. The same judge serves the real
// protocol, which must pass, and planted bugs, which must not.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/random.h"
#include "store/checkpoint_dir.h"
#include "store/test_checkpoints.h"

namespace holdfast::store {

class CheckpointHistory {
 public:
  static constexpr const char* kDir = "/runs/a/ckpt";

  /// Runs a plan drawn from `seed` on `disk` until it is through or the power fails: epochs that open, checkpoints of
  /// one to three writers, some given up, and commits that come late from an epoch that is over.
  void run(world::Disk& disk, std::uint64_t seed) {
    sim::SimRandom random(seed);
    CheckpointDir dir(disk, kDir);
    const std::uint64_t actions = 3 + random.below(3);
    open_epoch(dir);
    for (std::uint64_t i = 0; i < actions; ++i) {
      const TestCheckpoint next({epoch_, step_ += 10}, 1 + static_cast<std::uint32_t>(random.below(3)),
                                4 * random.below(20));
      switch (random.below(5)) {
        case 0: late_commit(disk, dir, next); break;
        case 1: give_up(disk, dir, next); break;
        default: commit(disk, dir, next); break;
      }
    }
  }

  /// As after a restart: the survivors' directory is used again, under a new epoch.
  void go_on(world::Disk& disk) {
    CheckpointDir dir(disk, kDir);
    const auto highest = dir.highest_epoch();
    if (!highest) return broken("after the restart: " + highest.error().message());
    epoch_ = *highest;
    open_epoch(dir);
    if (fence_ != epoch_) return broken("after the restart no epoch can be opened");
    if (const auto cleaned = dir.remove_partial(); !cleaned) broken("cleaning: " + cleaned.error().message());
    const TestCheckpoint next({epoch_, step_ += 10});
    commit(disk, dir, next);
    if (!acknowledged_.contains(next.id())) broken("after the restart nothing can be committed");
  }

  /// Reads the directory on a disk that works. `broken_promises` has the verdict.
  void judge(world::Disk& disk) {
    const auto survey = CheckpointDir(disk, kDir).newest();
    if (!survey) return broken("the directory can't be read: " + survey.error().message());
    for (const std::string& name : survey->foreign) broken("litter: " + name);
    for (const PassedOver& each : survey->passed_over) {
      // Nothing damaged the disk here: a manifest that a crash left stands for whole shards.
      if (each.code != Code::NotFound) broken("a manifest without its bytes: " + each.why);
    }
    const auto& newest = survey->newest;
    if (!acknowledged_.empty() && (!newest || newest->id < *acknowledged_.rbegin())) {
      broken("lost: " + checkpoint_name(*acknowledged_.rbegin()) + " was acknowledged, the newest is " +
             (newest ? checkpoint_name(newest->id) : "none"));
    }
    if (!newest) return;
    const auto attempt = attempted_.find(newest->id);
    if (attempt == attempted_.end()) return broken("nobody wrote " + checkpoint_name(newest->id));
    const auto loaded = load_checkpoint(disk, newest->dir);
    if (!loaded) return broken("the newest does not load: " + loaded.error().message());
    const std::string difference = attempt->second.difference(*loaded);
    if (!difference.empty()) broken("loaded wrongly: " + difference);
  }

  const std::vector<std::string>& broken_promises() const { return broken_; }

 private:
  void broken(std::string promise) { broken_.push_back(std::move(promise)); }

  void open_epoch(CheckpointDir& dir) {
    ++epoch_;
    if (dir.fence(epoch_)) fence_ = epoch_;
  }

  void commit(world::Disk& disk, CheckpointDir& dir, const TestCheckpoint& next) {
    attempted_.emplace(next.id(), next);
    const auto manifest = next.write_shards(disk, dir);
    if (!manifest || !dir.commit(*manifest)) return;
    acknowledged_.insert(next.id());
    if (next.id().epoch < fence_) {
      broken("stale: " + checkpoint_name(next.id()) + " was committed after epoch " + std::to_string(fence_) +
             " had been fenced");
    }
  }

  /// The shards are written, then a new epoch opens, then the old one wants to commit.
  void late_commit(world::Disk& disk, CheckpointDir& dir, const TestCheckpoint& next) {
    attempted_.emplace(next.id(), next);
    const auto manifest = next.write_shards(disk, dir);
    open_epoch(dir);
    if (!manifest || !dir.commit(*manifest) || next.id().epoch >= fence_) return;
    broken("stale: " + checkpoint_name(next.id()) + " was committed after epoch " + std::to_string(fence_) +
           " had been fenced");
  }

  void give_up(world::Disk& disk, CheckpointDir& dir, const TestCheckpoint& next) {
    (void)next.write(disk, dir.checkpoint_path(next.id()), 0);
    (void)dir.discard(next.id());
  }

  Epoch epoch_ = 0;
  Epoch fence_ = 0;  ///< the last one acknowledged
  Step step_ = 0;
  std::map<CheckpointId, TestCheckpoint> attempted_;
  std::set<CheckpointId> acknowledged_;
  std::vector<std::string> broken_;
};

}  // namespace holdfast::store
