// A bucket as a tree of files: folders are prefixes of keys, a rename is never needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "world/file_tree.h"
#include "world/object_store.h"

namespace holdfast::world {

/// Paths are `root` + key. An object that is being written is listed as its name + ".partial".
class ObjectTree final : public FileTree {
 public:
  /// `store` outlives it and its files. `root`: "s3://bucket/". `threads`: requests at a time.
  ObjectTree(ObjectStore& store, std::string root, unsigned threads)
      : store_(store), root_(std::move(root)), threads_(threads) {}

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  std::uint64_t piece_bytes(const std::string& path, std::uint64_t total) const override;
  Result<std::unique_ptr<NewFile>> begin(const std::string& path, const std::string& aside,
                                         const Pieces& pieces) override;
  Status write_new(const std::string& path, BytesView bytes) override;
  Status remove(const std::string& path) override;
  Status remove_dir(const std::string& /*path*/) override { return Ok{}; }
  Status make_dirs(const std::string& /*path*/) override { return Ok{}; }
  Status sync_dir(const std::string& /*path*/) override { return Ok{}; }
  Status sync_path(const std::string& /*path*/) override { return Ok{}; }
  Result<std::vector<std::string>> list(const std::string& path) override;
  bool exists(const std::string& path) override;
  unsigned threads() const override { return threads_; }
  bool checks_writes(const std::string& /*path*/) const override { return true; }

 private:
  /// Errors: BadInput (the bucket itself, another place).
  Result<std::string> key_of(const std::string& path) const;

  ObjectStore& store_;
  std::string root_;
  unsigned threads_;
};

}  // namespace holdfast::world
