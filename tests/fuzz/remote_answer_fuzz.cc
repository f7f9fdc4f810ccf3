// Any bytes as what a server says: heads, ranges and the XML of S3 are taken in, or are none.
#include <algorithm>

#include "base/check.h"
#include "world/http_headers.h"
#include "world/s3_xml.h"

namespace {

namespace world = holdfast::world;

void take_lines(std::string_view text) {
  world::HttpHead head;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    head.take(text.substr(0, end));
    text.remove_prefix(end);
  }
  CHECK(head.status() == 0 || (head.status() >= 100 && head.status() <= 999));
  if (const auto range = world::parse_content_range(head.header("content-range"))) {
    CHECK(range->begin <= range->end && range->end <= range->size);
  }
  if (const auto wait = world::parse_retry_after(head.header("retry-after"))) CHECK(wait->count() >= 0);
  for (const char c : world::printable(head.header("etag"))) CHECK(c >= ' ' && c <= '~');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = holdfast::as_text(std::as_bytes(std::span(data, size)));
  take_lines(text);
  const world::S3Error error = world::parse_s3_error(text);
  CHECK(error.code.size() + error.message.size() <= size);
  CHECK(world::parse_upload_id(text).size() <= size);
  if (const auto page = world::parse_s3_uploads(text)) {
    for (const world::UnfinishedObject& upload : page->uploads) CHECK(!upload.key.empty() && !upload.upload.empty());
  }
  if (const auto page = world::parse_s3_page(text)) {
    for (const world::ObjectInfo& each : page->objects) CHECK(!each.key.empty() && each.key.size() <= size);
  }
  return 0;
}
