// Files wherever they are: s3://bucket/key, http://, https://, and all other names on a disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "world/disk.h"
#include "world/http.h"
#include "world/object_tree.h"
#include "world/remote_file.h"
#include "world/s3_store.h"

namespace holdfast::world {

struct RemoteSettings {
  HttpPolicy http;
  RemoteFilePolicy files;
  S3Settings s3;
};

/// By the environment variables of docs/remote.md. `get` is as getenv. Errors: BadInput (a variable that is no number,
/// one key without the other).
Result<RemoteSettings> remote_settings(const std::function<const char*(const char*)>& get);

bool is_remote(const std::string& name);
/// `name` without what it may hold of credentials: of a URL, user, password and what follows the "?".
std::string shown_location(const std::string& name);
/// `text` with each mention of `name` replaced by what may be shown of it.
std::string without_secrets(std::string text, const std::string& name);

class Locations final : public FileTree {
 public:
  /// `disk` and `random` outlive it; `disk` takes absolute paths alone.
  Locations(Disk& disk, Random& random, const RemoteSettings& settings);

  Result<std::unique_ptr<ReadableFile>> open(const std::string& name) override;
  std::uint64_t piece_bytes(const std::string& name, std::uint64_t total) const override;
  unsigned writes_at_a_time(const std::string& name, unsigned threads) const override;
  // All that follows: BadInput for http(s)://, which is for reading alone.
  Result<std::unique_ptr<NewFile>> begin(const std::string& name, const std::string& aside,
                                         const Pieces& pieces) override;
  Status write_new(const std::string& name, BytesView bytes) override;
  Status remove(const std::string& name) override;
  Status remove_dir(const std::string& name) override;
  Status make_dirs(const std::string& name) override;
  Status sync_dir(const std::string& name) override;
  Status sync_path(const std::string& name) override;
  Result<std::vector<std::string>> list(const std::string& name) override;
  bool exists(const std::string& name) override;
  unsigned threads() const override { return disk_.threads(); }
  bool checks_writes(const std::string& name) const override { return is_remote(name); }

 private:
  struct Bucket {
    std::unique_ptr<ObjectStore> store;
    std::unique_ptr<ObjectTree> tree;
  };
  /// Where `name` can be written, listed and removed.
  Result<FileTree*> place_of(const std::string& name);
  template <typename Call>
  auto at(const std::string& name, Call call) -> decltype(call(std::declval<FileTree&>()));

  Disk& disk_;
  Random& random_;
  RemoteSettings settings_;
  HttpClient client_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;  ///< guarded by mutex_
};

}  // namespace holdfast::world
