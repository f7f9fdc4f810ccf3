// Places in the net by name: http(s):// URLs and s3://bucket/key.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace holdfast::world {

/// An http:// or https:// URL, taken apart so that nothing secret in it is sent or shown where it does not belong.
struct HttpUrl {
  std::string sent;   ///< without credentials and fragment, every byte fit for a request line
  std::string shown;  ///< for messages: also without what follows the "?"
  std::string user;
  std::string password;
};

/// Errors: BadInput; they show nothing of the URL but its scheme and host.
Result<HttpUrl> parse_http_url(const std::string& text);

struct S3Name {
  std::string bucket;
  std::string key;  ///< may be empty: the bucket itself
};

/// Of "s3://bucket/key". The key is taken as it stands: a "%20" in it is three letters. Errors: BadInput.
Result<S3Name> parse_s3_name(const std::string& text);

/// All but letters, digits and "-._~" as %XX, as request signatures ask for it; "/" stays where `keep_slashes`.
std::string percent_encoded(std::string_view text, bool keep_slashes);

bool is_http_url(std::string_view text);
bool is_s3_url(std::string_view text);

}  // namespace holdfast::world
