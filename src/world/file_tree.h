// Files in folders, wherever they are kept: on a disk, or as the objects of a bucket, whose folders are prefixes of
// their names. All that a directory of checkpoints asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "world/files.h"

namespace holdfast::world {

/// Thread-safe. Errors: NotFound, Denied, Unavailable, Internal; messages name the path. A file that is being written,
/// or was when its writer died, is listed under a name that begins with its own and is removed by that.
class FileTree : public FileSource, public FileTarget {
 public:
  /// Whole or not at all, also over a crash; of two writers one has Conflict. Errors: also Conflict: there is one, and
  /// it stays as it is.
  virtual Status write_new(const std::string& path, BytesView bytes) = 0;
  virtual Status remove(const std::string& path) = 0;
  /// An empty one.
  virtual Status remove_dir(const std::string& path) = 0;
  /// With parents; fine where it exists.
  virtual Status make_dirs(const std::string& path) = 0;
  /// Makes creations, renames and removals inside `path` last.
  virtual Status sync_dir(const std::string& path) = 0;
  /// Makes the folder itself last, and those above it.
  virtual Status sync_path(const std::string& path) = 0;
  /// Names in the folder, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  /// Calls that it does well to be given at a time.
  virtual unsigned threads() const { return 1; }
  /// Whether a write is Ok only after the place compared what it keeps with a checksum of what was sent.
  virtual bool checks_writes(const std::string& /*path*/) const { return false; }
};

}  // namespace holdfast::world
