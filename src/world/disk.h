// Files. Thread-safe. What is not synced may be lost or torn by a crash; a rename lasts once its directory is synced.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "world/file_tree.h"

namespace holdfast::world {

/// A file being written from its start. Closed by the destructor, which syncs nothing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// Errors: Unavailable (disk full, I/O error; part of `bytes` may be written).
  virtual Status append(BytesView bytes) = 0;
  /// Writes into the file or beyond its end; what lies between reads as zeros. Errors: as append.
  virtual Status write_at(std::uint64_t offset, BytesView bytes) = 0;
  /// Blocks until the bytes are on stable storage.
  virtual Status sync() = 0;
};

/// Every path is absolute.
class Disk : public FileTree {
 public:
  /// Creates or truncates.
  virtual Result<std::unique_ptr<WritableFile>> create(const std::string& path) = 0;
  /// To write into a file that is there, in place; `append` goes to its end. Internal where this disk can't.
  virtual Result<std::unique_ptr<WritableFile>> change(const std::string& path);
  /// Replaces `to` atomically.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// As rename, where there is no `to`; else Conflict.
  virtual Status rename_new(const std::string& from, const std::string& to) = 0;
  /// A file or an empty directory.
  Status remove(const std::string& path) override = 0;
  Status remove_dir(const std::string& path) override { return remove(path); }
  Status write_new(const std::string& path, BytesView bytes) override;
  Status sync_path(const std::string& path) override;

  std::uint64_t piece_bytes(const std::string& path, std::uint64_t total) const override;
  /// Written at `path` + `aside`, synced, renamed, its directory synced.
  Result<std::unique_ptr<NewFile>> begin(const std::string& path, const std::string& aside,
                                         const Pieces& pieces) override;

 protected:
  /// What `begin` gives, over `file`, which is at `path` + `aside` and written piece by piece.
  std::unique_ptr<NewFile> renamed_at_commit(std::unique_ptr<WritableFile> file, const std::string& path,
                                             const std::string& aside, const Pieces& pieces);
};

/// The directory that an absolute path is in.
std::string parent_of(const std::string& path);
/// Writes `path` whole or not at all, also over a crash: aside, sync, rename, sync of the directory.
Status write_file_atomically(Disk& disk, const std::string& path, BytesView bytes);

}  // namespace holdfast::world
