// The XML that S3 speaks: what its answers say, and the one list we send. Anything a server sends is taken in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "world/object_store.h"

namespace holdfast::world {

struct S3Error {
  std::string code;     ///< "NoSuchKey"; "" where the text is no error of S3's
  std::string message;  ///< the server's own words
};
S3Error parse_s3_error(std::string_view xml);

/// One page of ListObjectsV2.
struct S3Page {
  std::vector<ObjectInfo> objects;
  std::string next;  ///< where to go on; "" at the end
};
/// nullopt: no such list.
std::optional<S3Page> parse_s3_page(std::string_view xml);

/// One page of ListMultipartUploads.
struct S3Uploads {
  std::vector<UnfinishedObject> uploads;
  UnfinishedObject next;  ///< where to go on: after this one; its key is "" at the end
};
/// nullopt: no such list.
std::optional<S3Uploads> parse_s3_uploads(std::string_view xml);

/// The UploadId of InitiateMultipartUploadResult; "" where it has none.
std::string parse_upload_id(std::string_view xml);

struct S3Part {
  std::string etag;
  std::string crc32c;  ///< in base64; "" where it was sent without
};
/// The body of CompleteMultipartUpload; the first part is number 1.
std::string format_parts(std::span<const S3Part> parts);

}  // namespace holdfast::world
