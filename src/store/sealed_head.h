// What a sealed file says before its chunks: how they are kept, for which keys, and where each one is.
// Format: docs/format-sealed.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/seal_cipher.h"
#include "store/seal_key.h"
#include "world/files.h"
#include "world/random.h"

namespace holdfast::store {

constexpr const char* kSealedName = "holdfast.sealed";  ///< the one tensor of the outer file, and its metadata key
constexpr std::uint64_t kSealedChunkBytes = std::uint64_t{1} << 20U;
constexpr std::size_t kKeySlots = 4;
constexpr std::uint64_t kSealedPageBytes = 4096;

/// A file's own key; leaves nothing of it in memory.
struct DataKey {
  std::array<std::byte, 32> bytes{};
  ~DataKey();
};

struct SealedChunk {
  std::uint64_t at = 0;      ///< counted from the first chunk stored
  std::uint32_t stored = 0;  ///< as long as `plain`, or shorter and then compressed
  std::uint32_t plain = 0;
  SealTag tag{};  ///< without encryption a CRC32C of what is stored, then zeros

  bool compressed() const { return stored < plain; }
};

/// A data key, encrypted by a key of the user's.
struct KeySlot {
  SealKeyId key_id{};
  std::array<std::byte, 32> salt{};
  std::array<std::byte, 32> wrapped{};
  SealTag tag{};
};

struct SealedHead {
  bool encrypted = false;
  bool compressed = false;  ///< chunks may be
  std::array<std::byte, 16> file_id{};
  std::uint64_t plain_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::vector<SealedChunk> chunks;
  std::array<std::optional<KeySlot>, kKeySlots> slots;
  std::uint64_t payload_begin = 0;  ///< in the file
  std::uint64_t data_begin = 0;     ///< the first stored chunk, in the file

  /// What a chunk's tag vouches for besides its bytes: which chunk of which file.
  std::array<std::byte, 48> about(std::uint64_t chunk) const;
  /// "key 0123456789abcdef" or "keys ... and ...".
  std::string key_names() const;
};

/// Nonces of chunks are of kind 0.
constexpr std::uint32_t kChunkNonce = 0;

/// Bytes before the first chunk of a file with so many.
std::uint64_t sealed_head_bytes(std::uint64_t chunks);

/// All bytes before the first chunk. `key`: where it is encrypted.
Bytes format_sealed_head(const SealedHead& head, const std::optional<DataKey>& key);

/// Where in the file a slot is, and its bytes; none: of an empty one.
std::uint64_t slot_offset(const SealedHead& head, std::size_t slot);
Bytes format_slot(const std::optional<KeySlot>& slot);

void fill_random(std::span<std::byte> out, world::Random& random);
KeySlot wrap_key(const DataKey& data_key, const SealKey& key, const SealedHead& head, world::Random& random);
/// None: the slot is for another key, or damaged.
std::optional<DataKey> unwrap_key(const KeySlot& slot, const SealKey& key, const SealedHead& head);

/// A head as it is read: the table of chunks may need a key first.
class SealedHeadReader {
 public:
  /// None: not a sealed file. Reads its first 4 KiB alone to tell. Errors: BadInput (another version, broken layout),
  /// Unavailable.
  static Result<std::optional<SealedHeadReader>> open(world::ReadableFile& file);

  /// What is known without a key: all but the chunks.
  const SealedHead& head() const { return head_; }
  std::uint64_t chunk_count() const { return chunk_count_; }
  /// The key that opens the chunks; none where they are not encrypted. Errors: BadInput (a key is needed, or is not one
  /// of the file's), Corrupt (its slot is damaged).
  Result<std::optional<DataKey>> data_key(const std::optional<SealKey>& key) const;
  /// With its chunks, all of which lie in the file. Errors: Corrupt, BadInput (broken layout).
  Result<SealedHead> read(world::ReadableFile& file, const std::optional<DataKey>& key) const;

 private:
  Status parse(BytesView fixed, std::uint64_t payload_bytes);

  SealedHead head_;
  std::uint64_t chunk_count_ = 0;
  Bytes fixed_;
  SealTag table_tag_{};
};

}  // namespace holdfast::store
