// Objects by key: small ones put and got whole, large ones written in pieces and read like files, all of them listed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "world/files.h"

namespace holdfast::world {

struct ObjectInfo {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
};

/// One that was begun and not yet committed.
struct UnfinishedObject {
  std::string key;
  std::string upload;  ///< what tells it from others of the same key
};

/// What must hold for a write to take place. Where it does not: Conflict, and nothing is changed.
struct PutCondition {
  bool absent = false;  ///< there is no object of that key
  std::string etag;     ///< the object there has this ETag; "": any
};

/// Thread-safe. Every call blocks; errors name the object: NotFound, Denied, Conflict, Unavailable, Internal.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  /// Objects whose keys begin with `prefix`, by key. Errors: also BadInput (more than `count_max`).
  virtual Result<std::vector<ObjectInfo>> list(const std::string& prefix, std::size_t count_max) = 0;
  /// The whole object. Errors: also BadInput (larger than `bytes_max`).
  virtual Result<Bytes> get(const std::string& key, std::uint64_t bytes_max) = 0;
  /// Whole or not at all; on Ok it lasts. Gives the ETag.
  virtual Result<std::string> put(const std::string& key, BytesView bytes, const PutCondition& condition) = 0;
  /// Fine where there is none.
  virtual Status remove(const std::string& key) = 0;

  virtual Result<std::unique_ptr<ReadableFile>> open(const std::string& key) = 0;
  virtual std::uint64_t piece_bytes(std::uint64_t total) const = 0;
  /// `condition.absent` is judged when it is committed: of two writers one has Conflict. It takes no ETag.
  virtual Result<std::unique_ptr<NewFile>> begin(const std::string& key, const Pieces& pieces,
                                                 const PutCondition& condition) = 0;

  /// Objects whose keys begin with `prefix` that are being written, or were when their writer died. Errors: as list.
  virtual Result<std::vector<UnfinishedObject>> unfinished(const std::string& prefix, std::size_t count_max) = 0;
  /// Its writer can't commit it after that. Fine where there is none.
  virtual Status abandon(const UnfinishedObject& object) = 0;
};

}  // namespace holdfast::world
