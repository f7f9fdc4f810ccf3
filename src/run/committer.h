// Turns shards that ranks have written into committed checkpoints, and finds the newest whole one. Disk work runs in
// the background, one job at a time.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>

#include "run/messages.h"
#include "run/options.h"
#include "store/checkpoint_dir.h"
#include "world/world.h"

namespace holdfast::run {

struct CommitterEvents {
  std::function<void(Step step, const std::string& directory)> on_committed;
  /// A shard or the commit failed; training goes on. `rank`: whose shard, none for the commit.
  std::function<void(Step step, std::optional<Rank> rank, const std::string& why)> on_failed;
  std::function<void(const std::string&)> on_note;
};

class Committer {
 public:
  /// `world` and `options` outlive this object.
  Committer(world::World& world, const RunOptions& options, CommitterEvents events);

  /// The newest epoch that ever wrote into the directory. Blocks; called once, before the loop runs.
  Result<Epoch> highest_epoch();
  /// Shards of older epochs are refused from now on, also by a later run.
  void open_epoch(Epoch epoch);
  void on_shard(Rank rank, const ShardDone& shard);
  struct Found {
    Step step = kNoStep;
    std::string directory;
    std::vector<store::PassedOver> passed_over;
  };
  /// The newest checkpoint whose every byte verifies.
  void find(std::function<void(Found)> done);
  /// Nothing is waiting to be committed.
  bool idle() const { return !busy_ && jobs_.empty(); }
  /// Where a scheduled fault may damage the newest checkpoint; "" where there is none.
  const std::string& newest_directory() const { return newest_directory_; }

 private:
  struct Pending {
    std::map<Rank, store::ShardRecord> shards;
    std::set<Rank> failed;
    std::string structure;
  };
  struct Job {
    std::function<void()> work;
    std::function<void()> done;
  };
  void submit(std::function<void()> work, std::function<void()> done);
  void run_next();
  void commit(Step step, Pending pending);

  world::World& world_;
  const RunOptions& options_;
  CommitterEvents events_;
  store::CheckpointDir dir_;
  Epoch epoch_ = 0;
  std::map<Step, Pending> pending_;
  std::string newest_directory_;
  std::deque<Job> jobs_;
  bool busy_ = false;
};

}  // namespace holdfast::run
