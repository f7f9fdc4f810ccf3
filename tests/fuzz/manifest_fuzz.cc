// Any text as a manifest, and as the body of one under a right checksum: refused, or exactly what would be written.
#include <string_view>

#include "base/check.h"
#include "store/checkpoint_id.h"
#include "store/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace store = holdfast::store;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string& candidate : {std::string(text), store::wrap_manifest_body(text)}) {
    const auto manifest = store::manifest_from_text(candidate);
    if (!manifest) continue;
    const auto written = store::manifest_to_text(*manifest);
    CHECK(written);
    const auto again = store::manifest_from_text(*written);
    CHECK(again);
    CHECK(*again == *manifest);
  }
  if (const auto id = store::parse_checkpoint_name(text)) CHECK(store::checkpoint_name(*id) == text);
  if (const auto epoch = store::parse_fence_name(text)) CHECK(store::fence_name(*epoch) == text);
  return 0;
}
