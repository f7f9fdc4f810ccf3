// A bucket of S3, or of whoever speaks as S3 does.
#pragma once

#include <memory>
#include <string>

#include "world/http.h"
#include "world/object_store.h"
#include "world/remote_file.h"

namespace holdfast::world {

struct S3Settings {
  std::string endpoint;         ///< "https://host:port"; "": Amazon's, by region
  std::optional<AwsKeys> keys;  ///< none: requests are not signed, as public buckets allow
  std::string region = "us-east-1";
};

/// Where to send what is asked of a bucket's object. `query` as it is signed: sorted, each name with "=".
/// Errors: BadInput (the endpoint is no URL).
Result<HttpRequest> s3_request(const S3Settings& settings, const std::string& method, const std::string& bucket,
                               const std::string& key, const std::string& query);

/// `client` and `random` outlive it, and it outlives the files it opens and begins.
std::unique_ptr<ObjectStore> make_s3_store(HttpClient& client, Random& random, const S3Settings& settings,
                                           std::string bucket, const RemoteFilePolicy& policy);

}  // namespace holdfast::world
