#include "world/s3_upload.h"

#include <algorithm>
#include <vector>

#include "base/crc32c.h"
#include "world/http_call.h"
#include "world/s3_xml.h"

namespace holdfast::world {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kPieceBytesMin = 8 * kMiB;  // S3 asks for 5 MiB at least
constexpr std::uint64_t kPartsMax = 10'000;
constexpr std::uint64_t kAnswerBytesMax = kMiB;
constexpr const char* kMark = "x-amz-meta-holdfast-writer";

Result<HttpAnswer> call(const S3Object& object, const std::string& method, const std::string& query, BytesView body,
                        const std::vector<std::string>& headers, unsigned* tries = nullptr) {
  HttpRequest request = TRY(object.request(method, query), object.name);
  request.headers = headers;
  if (method == "PUT") request.headers.emplace_back("Content-Type: application/octet-stream");
  if (method == "POST") request.headers.emplace_back("Content-Type: application/xml");
  request.body = body;
  return http_call(object.client, std::move(request), object.name, kAnswerBytesMax, tries);
}

/// A server that knows this header takes no other bytes; the rest pass over it.
std::string checksum_header(const std::string& checksum) { return "x-amz-checksum-crc32c: " + checksum; }

/// The ETag of the object there, if it is the one that this writer's lost answer was about; else `failure`.
Result<std::string> ours_after_all(const S3Object& object, const std::string& mark, Error failure) {
  auto there = call(object, "HEAD", "", {}, {});
  if (!there || there->head.header(kMark) != mark) return failure;
  return std::string(there->head.header("etag"));
}

std::vector<std::string> condition_headers(const PutCondition& condition) {
  std::vector<std::string> headers;
  if (condition.absent) headers.emplace_back("If-None-Match: *");
  if (!condition.etag.empty()) headers.push_back("If-Match: " + condition.etag);
  return headers;
}

/// One piece: kept until it is committed.
class WholeUpload final : public NewFile {
 public:
  WholeUpload(S3Object object, bool only_if_absent, std::string mark)
      : object_(std::move(object)), only_if_absent_(only_if_absent), mark_(std::move(mark)) {}

  Status write(std::uint64_t /*index*/, BytesView bytes) override {
    bytes_.assign(bytes.begin(), bytes.end());
    return Ok{};
  }
  Status commit() override {
    TRY(s3_put(object_, bytes_, {.absent = only_if_absent_, .etag = ""}, mark_), "write");
    return Ok{};
  }

 private:
  S3Object object_;
  bool only_if_absent_;
  std::string mark_;
  Bytes bytes_;
};

class PartsUpload final : public NewFile {
 public:
  /// `checksums`: the server checks each part by its CRC32C.
  PartsUpload(S3Object object, std::string upload, std::uint64_t count, bool only_if_absent, std::string mark,
              bool checksums)
      : object_(std::move(object)),
        upload_(std::move(upload)),
        only_if_absent_(only_if_absent),
        mark_(std::move(mark)),
        checksums_(checksums),
        parts_(count) {}
  ~PartsUpload() override {
    if (!committed_) (void)call(object_, "DELETE", upload_query(), {}, {});  // else its parts are kept, and paid for
  }
  PartsUpload(const PartsUpload&) = delete;
  PartsUpload& operator=(const PartsUpload&) = delete;

  Status write(std::uint64_t index, BytesView bytes) override {
    const std::string query = "partNumber=" + std::to_string(index + 1) + "&" + upload_query();
    S3Part& part = parts_[index];  // each its own: no two writers of one part
    std::vector<std::string> headers;
    if (checksums_) {
      part.crc32c = base64_of(crc32c(bytes));
      headers.push_back(checksum_header(part.crc32c));
    }
    const HttpAnswer answer =
        TRY(call(object_, "PUT", query, bytes, headers), "write part " + std::to_string(index + 1));
    part.etag = answer.head.header("etag");
    if (part.etag.empty()) return Error(Code::Internal, object_.name + ": the server gave a part no ETag");
    return Ok{};
  }

  Status commit() override {
    const std::string list = format_parts(parts_);
    unsigned tries = 0;
    auto answer = call(object_, "POST", upload_query(), as_bytes(list),
                       condition_headers({.absent = only_if_absent_, .etag = ""}), &tries);
    if (answer) {
      // S3 begins its answer before it knows: an error may come with status 200.
      const S3Error error = parse_s3_error(as_text(answer->body));
      if (!error.code.empty()) {
        return Error(Code::Unavailable, object_.name + ": " + printable(error.code) + ": " + printable(error.message));
      }
      committed_ = true;
      return Ok{};
    }
    if (tries < 2) return std::move(answer).error();
    TRY(ours_after_all(object_, mark_, std::move(answer).error()), "commit");
    committed_ = true;
    return Ok{};
  }

 private:
  std::string upload_query() const { return "uploadId=" + percent_encoded(upload_, false); }

  S3Object object_;
  std::string upload_;
  bool only_if_absent_;
  std::string mark_;
  bool checksums_;
  std::vector<S3Part> parts_;
  bool committed_ = false;
};

}  // namespace

std::string base64_of(std::uint32_t checksum) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::uint64_t bits = std::uint64_t{checksum} << 4U;  // 36 bits: six letters of six, big-endian
  std::string text(6, ' ');
  for (auto letter = text.rbegin(); letter != text.rend(); ++letter, bits >>= 6U) *letter = letters[bits & 63U];
  return text + "==";
}

std::uint64_t s3_piece_bytes(std::uint64_t total) {
  const std::uint64_t least = total / (kPartsMax - 1) + 1;
  return std::max(kPieceBytesMin, (least + kMiB - 1) / kMiB * kMiB);
}

Result<std::string> s3_put(const S3Object& object, BytesView bytes, const PutCondition& condition,
                           const std::string& mark) {
  std::vector<std::string> headers = condition_headers(condition);
  headers.push_back(std::string(kMark) + ": " + mark);
  headers.push_back(checksum_header(base64_of(crc32c(bytes))));
  unsigned tries = 0;
  auto answer = call(object, "PUT", "", bytes, headers, &tries);
  if (answer) return std::string(answer->head.header("etag"));
  if (tries < 2 || answer.error().code() != Code::Conflict) return std::move(answer).error();
  return ours_after_all(object, mark, std::move(answer).error());
}

Result<std::unique_ptr<NewFile>> s3_begin(S3Object object, const Pieces& pieces, bool only_if_absent,
                                          std::string mark) {
  if (pieces.count() == 1) {
    return std::unique_ptr<NewFile>(std::make_unique<WholeUpload>(std::move(object), only_if_absent, std::move(mark)));
  }
  if (pieces.count() > kPartsMax) {
    return Error(Code::BadInput, object.name + ": " + std::to_string(pieces.count()) + " parts, S3 takes 10000");
  }
  const std::vector<std::string> headers = {std::string(kMark) + ": " + mark, "x-amz-checksum-algorithm: CRC32C"};
  const auto begun = TRY(call(object, "POST", "uploads=", {}, headers), "begin to write");
  const bool checksums = begun.head.header("x-amz-checksum-algorithm") == "CRC32C";
  std::string upload = parse_upload_id(as_text(begun.body));
  if (upload.empty()) return Error(Code::Internal, object.name + ": the server began no upload");
  return std::unique_ptr<NewFile>(std::make_unique<PartsUpload>(std::move(object), std::move(upload), pieces.count(),
                                                                only_if_absent, std::move(mark), checksums));
}

}  // namespace holdfast::world
