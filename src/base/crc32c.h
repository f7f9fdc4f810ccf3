// CRC32C (Castagnoli), the checksum of every stored chunk and manifest; also what S3 calls CRC32C.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace holdfast {

/// CRC32C of the bytes seen so far (`before`, 0 for none) followed by `bytes`.
std::uint32_t crc32c(BytesView bytes, std::uint32_t before = 0);

}  // namespace holdfast
