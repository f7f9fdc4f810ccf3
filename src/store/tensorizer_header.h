// The records of a CoreWeave tensorizer file, versions 1 to 5: what they say, before any of it is believed.
// All integers are little-endian and packed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace holdfast::store {

constexpr std::string_view kTensorizerSign = "|TZR|";
constexpr std::uint64_t kTensorizerHeaderBytes = 73;  ///< with the size of the index that follows

struct TensorizerHead {
  std::uint32_t version = 0;
  bool encrypted = false;
  bool versioned = false;  ///< each entry of the index begins with a version
  std::uint64_t tensors = 0;
  std::uint64_t index_bytes = 0;
};

/// One tensor, as the index has it.
struct TensorizerEntry {
  bool wide = false;  ///< its dimensions have 64 bits
  std::string name;   ///< as stored: text, or a list in JSON behind a byte 0x1E
  std::uint8_t kind = 0;
  std::string dtype;  ///< numpy's; where numpy has none, that of a carrier, NUL, and torch's
  std::vector<std::uint64_t> shape;
  std::uint64_t header_begin = 0;  ///< in the file
  std::uint64_t data_begin = 0;
  std::uint64_t data_bytes = 0;
};

struct TensorizerHash {
  std::uint8_t type = 0;  ///< 0: CRC-32, 1: SHA-256
  Bytes value;
};

struct TensorizerDerivation {
  std::uint64_t operations = 0;
  std::uint64_t memory_bytes = 0;
  std::int32_t algorithm = 0;
  Bytes salt;
  friend bool operator==(const TensorizerDerivation&, const TensorizerDerivation&) = default;
};

/// How the data is encrypted: in chunks, each with a nonce one above that before it.
struct TensorizerCrypt {
  std::optional<TensorizerDerivation> derivation;
  std::uint64_t chunk_bytes = 0;  ///< 0: all of it is one
  std::array<std::byte, 24> nonce{};
  std::vector<std::array<std::byte, 16>> macs;
};

/// What stands before a tensor's data.
struct TensorizerRecord {
  std::vector<TensorizerHash> hashes;
  std::optional<TensorizerCrypt> crypt;
  Bytes hashed;  ///< what the hashes are over, ahead of the data: the record without their values and without `crypt`
};

/// Errors of all: BadInput.
Result<TensorizerHead> parse_tensorizer_head(BytesView bytes, std::uint64_t file_bytes);
Result<std::vector<TensorizerEntry>> parse_tensorizer_index(BytesView bytes, const TensorizerHead& head);
/// Must say the same as `entry`.
Result<TensorizerRecord> parse_tensorizer_record(BytesView bytes, const TensorizerEntry& entry, bool encrypted);

/// The dotted path that a stored name stands for. Errors: BadInput.
Result<std::string> tensorizer_name(const TensorizerEntry& entry);

}  // namespace holdfast::store
