// Writing one object of S3, in parts that become an object when they are committed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "world/http.h"
#include "world/object_store.h"

namespace holdfast::world {

/// An object and how to ask for it.
struct S3Object {
  HttpClient& client;
  std::string name;  ///< for messages: s3://bucket/key
  std::function<Result<HttpRequest>(const std::string& method, const std::string& query)> request;
};

/// A CRC32C as S3 writes it.
std::string base64_of(std::uint32_t checksum);

/// A multiple of 1 MiB, so that `total` bytes need at most as many parts as S3 takes; at least 8 MiB.
std::uint64_t s3_piece_bytes(std::uint64_t total);

/// Puts `bytes` whole. `mark` is unique to this call: by it an answer that got lost on the way is told from another
/// writer's object. Gives the ETag. Errors: Conflict (`condition` does not hold).
Result<std::string> s3_put(const S3Object& object, BytesView bytes, const PutCondition& condition,
                           const std::string& mark);

/// One piece becomes one request at commit; of more, each is a part of an upload, sent as it is written.
Result<std::unique_ptr<NewFile>> s3_begin(S3Object object, const Pieces& pieces, bool only_if_absent, std::string mark);

}  // namespace holdfast::world
