// Numbers of the sealed format that its writer and its reader share. docs/format-sealed.md tells them in words.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "store/seal_cipher.h"

namespace holdfast::store {

constexpr std::string_view kSealedMagic = "HFSEALED";
constexpr std::uint32_t kSealedVersion = 1;
constexpr std::uint32_t kSealedEncrypted = 1;  // flags
constexpr std::uint32_t kSealedCompressed = 2;
constexpr std::uint32_t kTableNonce = 1;      // a kind of nonce
constexpr std::uint32_t kSealedSlotKind = 1;  // AES-256-GCM by a key of 32 bytes

// Counted from the payload's first byte. The fixed part is followed by the table's tag, then zeros.
constexpr std::uint64_t kSealedFixedBytes = 56;
constexpr std::uint64_t kSealedSlotsBegin = 512;
constexpr std::uint64_t kSealedSlotBytes = 512;  // a disk's sector, so that no torn write of one harms another
constexpr std::uint64_t kSealedTableBegin = 3584;
constexpr std::uint64_t kSealedEntryBytes = 32;
constexpr std::uint64_t kSealedChunksMax = std::uint64_t{1} << 25U;  // their table is one message of the cipher

struct SealedHead;
/// The header that makes the file a safetensors file to others: a function of what else the head says.
Bytes sealed_outer_header(const SealedHead& head, std::uint64_t payload_bytes);

/// How the table and the chunks of a file without encryption carry their checksums.
SealTag checksum_tag(std::uint32_t checksum);

}  // namespace holdfast::store
