// Files wherever they are: s3://bucket/key, http://, https://, and all other names on a disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "world/disk.h"
#include "world/http.h"
#include "world/object_store.h"
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

class Locations final : public FileSource, public FileTarget {
 public:
  /// `disk` and `random` outlive it; `disk` takes absolute paths alone.
  Locations(Disk& disk, Random& random, const RemoteSettings& settings);

  Result<std::unique_ptr<ReadableFile>> open(const std::string& name) override;
  std::uint64_t piece_bytes(const std::string& name, std::uint64_t total) const override;
  unsigned writes_at_a_time(const std::string& name, unsigned threads) const override;
  /// Errors: BadInput for http(s)://, which is for reading alone.
  Result<std::unique_ptr<NewFile>> begin(const std::string& name, const std::string& aside,
                                         const Pieces& pieces) override;
  /// The bucket as it can be listed and deleted from; it lives as long as this object.
  ObjectStore& bucket(const std::string& name);

 private:
  Disk& disk_;
  Random& random_;
  RemoteSettings settings_;
  HttpClient client_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<ObjectStore>> buckets_;  ///< guarded by mutex_
};

}  // namespace holdfast::world
