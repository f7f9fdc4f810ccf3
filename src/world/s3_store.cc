#include "world/s3_store.h"

#include <algorithm>

#include "world/http_call.h"
#include "world/s3_upload.h"
#include "world/s3_xml.h"

namespace holdfast::world {
namespace {

constexpr std::uint64_t kPageBytesMax = std::uint64_t{8} << 20U;

class S3Store final : public ObjectStore {
 public:
  S3Store(HttpClient& client, Random& random, const S3Settings& settings, std::string bucket,
          const RemoteFilePolicy& policy)
      : client_(client), random_(random), settings_(settings), bucket_(std::move(bucket)), policy_(policy) {}

  Result<std::vector<ObjectInfo>> list(const std::string& prefix, std::size_t count_max) override {
    std::vector<ObjectInfo> objects;
    std::string next;
    do {
      std::string query = next.empty() ? "" : "continuation-token=" + percent_encoded(next, false) + "&";
      query += "list-type=2&prefix=" + percent_encoded(prefix, false);
      const HttpAnswer answer = TRY(call("GET", "", query, prefix, kPageBytesMax), "list");
      auto page = parse_s3_page(as_text(answer.body));
      if (!page) return Error(Code::Internal, name_of(prefix) + ": the server's list is none");
      if (page->objects.empty() && !page->next.empty() && page->next == next) {
        return Error(Code::Internal, name_of(prefix) + ": the server's list does not go on");
      }
      std::move(page->objects.begin(), page->objects.end(), std::back_inserter(objects));
      if (objects.size() > count_max) {
        return Error(Code::BadInput, name_of(prefix) + ": more than " + std::to_string(count_max) + " objects");
      }
      next = std::move(page->next);
    } while (!next.empty());
    return objects;
  }

  Result<Bytes> get(const std::string& key, std::uint64_t bytes_max) override {
    HttpAnswer answer = TRY(call("GET", key, "", key, bytes_max), "read");
    return std::move(answer.body);
  }

  Result<std::string> put(const std::string& key, BytesView bytes, const PutCondition& condition) override {
    return s3_put(object(key), bytes, condition, mark());
  }

  Status remove(const std::string& key) override {
    const auto answer = call("DELETE", key, "", key, kPageBytesMax);
    if (answer || answer.error().code() == Code::NotFound) return Ok{};
    return answer.error();
  }

  Result<std::unique_ptr<ReadableFile>> open(const std::string& key) override {
    HttpRequest request = TRY(s3_request(settings_, "GET", bucket_, key, ""), name_of(key));
    return open_remote_file(client_, std::move(request), name_of(key), policy_);
  }

  std::uint64_t piece_bytes(std::uint64_t total) const override { return s3_piece_bytes(total); }

  Result<std::unique_ptr<NewFile>> begin(const std::string& key, const Pieces& pieces,
                                         const PutCondition& condition) override {
    return s3_begin(object(key), pieces, condition.absent, mark());
  }

  Result<std::vector<UnfinishedObject>> unfinished(const std::string& prefix, std::size_t count_max) override {
    std::vector<UnfinishedObject> uploads;
    UnfinishedObject next;
    do {
      std::string query;
      if (!next.key.empty()) query += "key-marker=" + percent_encoded(next.key, false) + "&";
      query += "prefix=" + percent_encoded(prefix, false);
      if (!next.key.empty()) query += "&upload-id-marker=" + percent_encoded(next.upload, false);
      query += "&uploads=";
      const HttpAnswer answer = TRY(call("GET", "", query, prefix, kPageBytesMax), "list uploads");
      auto page = parse_s3_uploads(as_text(answer.body));
      if (!page) return Error(Code::Internal, name_of(prefix) + ": the server's list of uploads is none");
      if (page->next.key == next.key && page->next.upload == next.upload && !next.key.empty()) {
        return Error(Code::Internal, name_of(prefix) + ": the server's list of uploads does not go on");
      }
      std::move(page->uploads.begin(), page->uploads.end(), std::back_inserter(uploads));
      if (uploads.size() > count_max) {
        return Error(Code::BadInput, name_of(prefix) + ": more than " + std::to_string(count_max) + " uploads");
      }
      next = std::move(page->next);
    } while (!next.key.empty());
    return uploads;
  }

  Status abandon(const UnfinishedObject& object) override {
    const std::string query = "uploadId=" + percent_encoded(object.upload, false);
    const auto answer = call("DELETE", object.key, query, object.key, kPageBytesMax);
    if (answer || answer.error().code() == Code::NotFound) return Ok{};
    return answer.error();
  }

 private:
  std::string name_of(const std::string& key) const { return "s3://" + bucket_ + "/" + key; }
  std::string mark() { return std::to_string(random_.next()); }

  S3Object object(const std::string& key) {
    return {client_, name_of(key),
            [settings = settings_, bucket = bucket_, key](const std::string& method, const std::string& query) {
              return s3_request(settings, method, bucket, key, query);
            }};
  }

  Result<HttpAnswer> call(const std::string& method, const std::string& key, const std::string& query,
                          const std::string& named, std::uint64_t bytes_max) {
    HttpRequest request = TRY(s3_request(settings_, method, bucket_, key, query), name_of(named));
    return http_call(client_, std::move(request), name_of(named), bytes_max);
  }

  HttpClient& client_;
  Random& random_;
  S3Settings settings_;
  std::string bucket_;
  RemoteFilePolicy policy_;
};

}  // namespace

Result<HttpRequest> s3_request(const S3Settings& settings, const std::string& method, const std::string& bucket,
                               const std::string& key, const std::string& query) {
  std::string url;
  if (!settings.endpoint.empty()) {
    const HttpUrl endpoint = TRY(parse_http_url(settings.endpoint), "the S3 endpoint");
    if (!endpoint.user.empty() || endpoint.sent != endpoint.shown) {
      return Error(Code::BadInput, "the S3 endpoint " + endpoint.shown + ": give scheme, host and port alone");
    }
    url = endpoint.sent + (endpoint.sent.ends_with('/') ? "" : "/") + bucket;
  } else if (bucket.find('.') == std::string::npos) {
    url = "https://" + bucket + ".s3." + settings.region + ".amazonaws.com";
  } else {  // the certificate covers one name below s3.REGION
    url = "https://s3." + settings.region + ".amazonaws.com/" + bucket;
  }
  url += "/" + percent_encoded(key, true);
  HttpRequest request;
  request.method = method;
  request.url = {.sent = query.empty() ? url : url + "?" + query, .shown = url, .user = "", .password = ""};
  request.keys = settings.keys;
  if (request.keys) request.keys->region = settings.region;
  return request;
}

std::unique_ptr<ObjectStore> make_s3_store(HttpClient& client, Random& random, const S3Settings& settings,
                                           std::string bucket, const RemoteFilePolicy& policy) {
  return std::make_unique<S3Store>(client, random, settings, std::move(bucket), policy);
}

}  // namespace holdfast::world
