// CRC-32, the checksum of zip files and of tensorizer.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace holdfast::store {

/// `before`: what the bytes ahead of these gave, so that parts can be summed one after the other.
std::uint32_t crc32(BytesView bytes, std::uint32_t before = 0);

}  // namespace holdfast::store
