// The directory of a run's checkpoints: commits whole ones, finds the newest that verifies, keeps a few.
// Layout: DIR/step-000000000050-epoch-3/{shard-0-of-4.safetensors, ..., manifest.json} and DIR/fence-3.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/checkpoint.h"
#include "store/checkpoint_id.h"
#include "store/manifest.h"
#include "world/file_tree.h"

namespace holdfast::store {

struct RetentionPolicy {
  std::size_t keep = 2;  ///< verified checkpoints that stay, at least 1
};

/// A checkpoint that was not chosen, and why.
struct PassedOver {
  std::string checkpoint;     ///< name of its directory
  Code code = Code::Corrupt;  ///< NotFound: it was never committed; else it is damaged or can't be read
  std::string why;
};

struct FoundCheckpoint {
  CheckpointId id;
  std::string dir;
  Manifest manifest;
};

/// What is in the directory, as far as somebody who resumes must know.
struct CheckpointSurvey {
  std::optional<FoundCheckpoint> newest;  ///< every byte of it verified
  std::vector<PassedOver> passed_over;    ///< newer than `newest`, newest first
  std::vector<std::string> foreign;       ///< names that are not ours; never touched
};

/// What retention did after a commit.
struct RetentionReport {
  std::vector<std::string> removed;
  std::vector<PassedOver> damaged;  ///< committed, but they do not verify
  std::string trouble;              ///< why it could not finish; "" where it did
};

/// One that is there, finished or not.
struct ListedCheckpoint {
  CheckpointId id;
  bool committed = false;
  std::optional<Manifest> manifest;  ///< of one that is committed; its shards were not looked at
  std::string why;                   ///< why there is no manifest
};

struct CheckpointList {
  std::vector<ListedCheckpoint> checkpoints;  ///< newest first
  std::vector<std::string> foreign;           ///< names that are not ours
};

/// Used by one thread at a time; shards of checkpoints not yet committed may be written meanwhile by anyone.
class CheckpointDir {
 public:
  /// `files` outlives this object. `path` need not exist.
  CheckpointDir(world::FileTree& files, std::string path, RetentionPolicy policy = {});

  /// Where the shards of checkpoint `id` are to be written before `commit`.
  std::string checkpoint_path(CheckpointId id) const;

  /// Makes the written shards the newest checkpoint, then removes those that `keep` no longer covers and what
  /// `remove_partial` would. On Ok it outlives a crash; on any error the previous one still loads. The same manifest
  /// again is Ok. Blocks for three syncs, and for reading one checkpoint back where an older one is to be removed.
  /// Errors: Conflict (a newer epoch was fenced or has written here, or this checkpoint is committed with other
  /// content), NotFound or Corrupt (a shard is missing or of another size), BadInput, Unavailable (disk full: worth a
  /// retry).
  Status commit(const Manifest& manifest);

  /// From now on, and after any restart, commits of epochs older than `epoch` are refused. Blocks for two syncs.
  /// Errors: Conflict (a newer epoch was here), Unavailable.
  Status fence(Epoch epoch);

  /// Fences a new epoch, `at_least` and above all that were here before. Of two that do so at the same time each gets
  /// its own, and only the later one may commit. Blocks as fence. Errors: Conflict (it was overtaken), Unavailable.
  Result<Epoch> open_epoch(Epoch at_least = 1);

  /// The newest epoch that was fenced or has written here; a run that begins opens a newer one. 0 where none.
  Result<Epoch> highest_epoch();

  /// Reads checkpoints from the newest on until one verifies. Blocks for reading them. Errors: Unavailable, Denied
  /// (the directory itself can't be read).
  Result<CheckpointSurvey> newest();

  /// All that is there, by their manifests alone. Errors: NotFound (no such directory), Unavailable, Denied.
  Result<CheckpointList> all();

  /// What retention would remove now, after reading back the newest `keep`; with `act`, removes it, and what
  /// remove_partial would. Errors: as newest.
  Result<RetentionReport> prune(bool act);

  /// Removes what can never be committed any more: without manifest, and of an epoch older than the fence or of an
  /// older step than one committed by the same epoch. Those it can't read or that hold files not ours are left. Returns
  /// the names removed.
  Result<std::vector<std::string>> remove_partial();

  /// Gives up checkpoint `id` before its commit, freeing its space. Fine where it does not exist. Errors: Conflict (it
  /// is committed, or holds a file that is not ours).
  Status discard(CheckpointId id);

  /// Of the last successful commit.
  const RetentionReport& last_retention() const { return retention_; }

 private:
  struct Listing {
    std::vector<CheckpointId> ids;  ///< newest first, committed or not
    std::optional<Epoch> fence;
    std::vector<std::string> fence_files;  ///< the fence, older ones, and what a crash left of them aside
    std::vector<std::string> foreign;
    Epoch highest_epoch() const;
  };

  Result<Listing> list();
  Result<bool> committed(CheckpointId id);
  std::vector<CheckpointId> all_committed(const Listing& listing);
  Result<Manifest> verify(CheckpointId id);
  Status check_shards(const Manifest& manifest, const std::string& dir);
  Result<bool> already_committed(CheckpointId id, const std::string& text);
  Result<RetentionReport> retain(bool act);
  Result<std::set<std::string>> needed_by(const std::vector<CheckpointId>& ids);
  Status remove_all(const Listing& listing, const std::vector<CheckpointId>& given_up,
                    std::vector<std::string>& removed);
  Result<Manifest> confirm(CheckpointId id);
  Result<bool> remove_checkpoint(CheckpointId id, const std::set<std::string>& needed);
  Status raise_fence(Epoch epoch);
  Status make_durable_path();

  world::FileTree& files_;
  std::string path_;
  RetentionPolicy policy_;
  std::set<CheckpointId> verified_;  ///< read back whole by this object
  RetentionReport retention_;
  bool path_durable_ = false;
};

}  // namespace holdfast::store
