// Checksums that travel inside a safetensors file, in its metadata, where other readers ignore them.
// Format: docs/format-tensors.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace holdfast::store {

constexpr const char* kChecksumsKey = "holdfast.checksums";
constexpr std::uint64_t kChecksumChunkBytes = std::uint64_t{1} << 20U;

struct Checksums {
  std::uint32_t header = 0;           ///< CRC32C of all bytes before the data buffer, the digits below read as zeros
  std::vector<std::uint32_t> chunks;  ///< CRC32C of each chunk of the data buffer, the last one may be shorter
  friend bool operator==(const Checksums&, const Checksums&) = default;
};

/// Chunks of a data buffer of so many bytes.
std::uint64_t chunk_count(std::uint64_t data_bytes);

/// As wide for every value as for any other with as many chunks.
std::string format_checksums(const Checksums& checksums);

/// Errors: BadInput (not as format_checksums writes it, or not for so many bytes).
Result<Checksums> parse_checksums(std::string_view text, std::uint64_t data_bytes);

/// `prefix`: the bytes before the data buffer, `text` the value of kChecksumsKey in it. Errors: BadInput (`text` is not
/// there in plain letters).
Result<std::uint32_t> header_checksum(BytesView prefix, std::string_view text);

}  // namespace holdfast::store
