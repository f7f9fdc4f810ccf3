#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace holdfast {
namespace {

// The library counts bytes in an int.
constexpr std::size_t kPieceBytesMax = std::size_t{1} << 30U;

}  // namespace

std::uint32_t crc32c(BytesView bytes, std::uint32_t before) {
  std::uint32_t state = ~before;
  while (!bytes.empty()) {
    const BytesView piece = bytes.first(std::min(bytes.size(), kPieceBytesMax));
    // The library reads only, though its signature lacks the const.
    auto* raw = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    state = crc32_iscsi(raw, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
}

}  // namespace holdfast
