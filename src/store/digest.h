// What tells one tensor's bytes from any other's: 128 bits that change with dtype, shape and content (XXH3). Not for
// guarding against people who want two to be alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace holdfast::store {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
};

Digest digest_of(std::string_view dtype, const std::vector<std::uint64_t>& shape, BytesView bytes);

/// 32 lower-case hex digits.
std::string digest_text(const Digest& digest);
std::optional<Digest> parse_digest(std::string_view text);

}  // namespace holdfast::store
