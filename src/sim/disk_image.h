// One machine's disk, in memory: a tree of names, the changes that are not yet on stable storage, and what a crash
// makes of them. SimDisk (sim_disk.h) is how a process sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/inode.h"
#include "sim/policy.h"

namespace holdfast::sim {

class DiskImage {
 public:
  explicit DiskImage(const SimRandom& random);

  // As in world/disk.h. `create` and `open` count an open file: give it back with `close`.
  Result<InodePtr> create(const std::string& path);
  Result<InodePtr> open(const std::string& path);
  /// As `open`, creating the file where there is none.
  Result<InodePtr> append_to(const std::string& path);
  void close(const InodePtr& file);
  Status write(Inode& file, std::size_t offset, BytesView bytes);
  Status rename(const std::string& from, const std::string& to);
  Status remove(const std::string& path);
  Status make_dirs(const std::string& path);
  Status sync_dir(const std::string& path);
  Result<std::vector<std::string>> list(const std::string& path) const;
  bool exists(const std::string& path) const;

  /// Power fails: unsynced bytes and names are kept or lost by chance. A rename is kept or lost whole.
  void crash();
  /// Damages one byte, on stable storage too. False: no such file, or it is shorter.
  bool flip_byte(const std::string& path, std::uint64_t offset);
  /// Cuts the file, on stable storage too.
  bool truncate(const std::string& path, std::uint64_t size);
  std::uint64_t bytes_used() const { return used_; }
  /// Crashes so far: a file opened before one must not be closed after it.
  std::uint64_t crashes() const { return crashes_; }
  /// For the calls that SimDisk lets fail.
  bool draw_error(double probability) { return random_.chance(probability); }

  DiskPolicy policy;

 private:
  /// A change of names, atomic, on its way to stable storage. It lasts once `dir` is synced.
  struct Change {
    InodePtr dir;
    std::string name;
    InodePtr set;    ///< what `name` now stands for; null: removed
    InodePtr unset;  ///< what was removed
  };
  static void apply(const Change& change);
  static void erase_durable(const InodePtr& inode);

  InodePtr find(const std::string& path) const;
  /// The directory that holds `path`, and the last part of `path`.
  Result<std::pair<InodePtr, std::string>> parent(const std::string& path) const;
  void unlink(const InodePtr& inode);
  void revert(Inode& dir);

  SimRandom random_;
  InodePtr root_;
  std::vector<Change> pending_;
  std::uint64_t used_ = 0;
  std::uint64_t crashes_ = 0;
};

}  // namespace holdfast::sim
