#include "world/url.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <utility>

namespace holdfast::world {
namespace {

constexpr std::size_t kBucketBytesMax = 255;
constexpr std::size_t kKeyBytesMax = 1024;  // S3's own limit

using Parsed = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

bool begins(std::string_view text, std::string_view scheme) {
  return text.size() >= scheme.size() && std::equal(scheme.begin(), scheme.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

bool is_plain(unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~'; }

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7f; }

}  // namespace

bool is_http_url(std::string_view text) { return begins(text, "http://") || begins(text, "https://"); }
bool is_s3_url(std::string_view text) { return begins(text, "s3://"); }

Result<HttpUrl> parse_http_url(const std::string& text) {
  const Parsed url(curl_url(), &curl_url_cleanup);
  if (url == nullptr) return Error(Code::Unavailable, "no memory for a URL");
  if (!is_http_url(text)) return Error(Code::BadInput, "not an http:// or https:// URL");
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return Error(Code::BadInput, "a URL with control characters in it; write them as %XX");
  }
  const CURLUcode set = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS | CURLU_URLENCODE);
  if (set != CURLUE_OK) return Error(Code::BadInput, std::string("not a URL: ") + curl_url_strerror(set));
  HttpUrl parsed;
  parsed.user = part(url.get(), CURLUPART_USER, CURLU_URLDECODE);
  parsed.password = part(url.get(), CURLUPART_PASSWORD, CURLU_URLDECODE);
  for (const CURLUPart dropped : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_FRAGMENT}) {
    (void)curl_url_set(url.get(), dropped, nullptr, 0);
  }
  parsed.sent = part(url.get(), CURLUPART_URL);
  (void)curl_url_set(url.get(), CURLUPART_QUERY, nullptr, 0);
  parsed.shown = part(url.get(), CURLUPART_URL);
  if (parsed.sent.empty() || parsed.shown.empty()) return Error(Code::BadInput, "a URL without a host");
  return parsed;
}

Result<S3Name> parse_s3_name(const std::string& text) {
  if (!is_s3_url(text)) return Error(Code::BadInput, text + ": not s3://bucket/key");
  const std::string_view rest = std::string_view(text).substr(5);
  const std::size_t slash = rest.find('/');
  S3Name name{std::string(rest.substr(0, slash)), ""};
  if (slash != std::string_view::npos) name.key = rest.substr(slash + 1);
  const bool good = std::all_of(name.bucket.begin(), name.bucket.end(),
                                [](char c) { return is_plain(static_cast<unsigned char>(c)) && c != '~'; });
  if (!good || name.bucket.empty() || name.bucket.size() > kBucketBytesMax) {
    return Error(Code::BadInput, text + ": no bucket is called that; write s3://bucket/key");
  }
  if (name.key.size() > kKeyBytesMax) {
    return Error(Code::BadInput, text.substr(0, 200) + "...: the key is longer than S3's 1024 bytes");
  }
  if (std::any_of(name.key.begin(), name.key.end(), is_control)) {
    return Error(Code::BadInput, "s3://" + name.bucket + ": a key with control characters in it");
  }
  return name;
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  constexpr std::array<char, 17> digits = {"0123456789ABCDEF"};
  std::string encoded;
  encoded.reserve(text.size());
  for (const char each : text) {
    const auto c = static_cast<unsigned char>(each);
    if (is_plain(c) || (keep_slashes && c == '/')) {
      encoded += each;
    } else {
      encoded += '%';
      encoded += digits[c >> 4U];
      encoded += digits[c & 15U];
    }
  }
  return encoded;
}

}  // namespace holdfast::world
