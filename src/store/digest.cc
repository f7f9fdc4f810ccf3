#include "store/digest.h"

#include <xxhash.h>

namespace holdfast::store {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kHalf = 16;

void add_hex(std::string& text, std::uint64_t value) {
  for (unsigned shift = 64; shift > 0; shift -= 4) text += kDigits[(value >> (shift - 4)) & 15U];
}

std::optional<std::uint64_t> from_hex(std::string_view text) {
  std::uint64_t value = 0;
  for (const char digit : text) {
    const std::size_t four = kDigits.find(digit);
    if (four == std::string_view::npos) return std::nullopt;
    value = value << 4U | four;
  }
  return value;
}

}  // namespace

Digest digest_of(std::string_view dtype, const std::vector<std::uint64_t>& shape, BytesView bytes) {
  std::string kind(dtype);
  for (const std::uint64_t size : shape) kind.append(",").append(std::to_string(size));
  const XXH64_hash_t seed = XXH3_64bits(kind.data(), kind.size());
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.high64, hash.low64};
}

std::string digest_text(const Digest& digest) {
  std::string text;
  add_hex(text, digest.high);
  add_hex(text, digest.low);
  return text;
}

std::optional<Digest> parse_digest(std::string_view text) {
  if (text.size() != 2 * kHalf) return std::nullopt;
  const auto high = from_hex(text.substr(0, kHalf)), low = from_hex(text.substr(kHalf));
  if (!high || !low) return std::nullopt;
  return Digest{*high, *low};
}

}  // namespace holdfast::store
