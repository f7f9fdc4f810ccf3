// The layout of a sealed file's head, as it is written; and the keys of its slots.
#include "store/sealed_head.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "store/safetensors.h"
#include "store/sealed_layout.h"
#include "world/hmac.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kOuterBytes = 512;
constexpr std::string_view kWrapOf = "holdfast.sealed wrap";

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kSealedPageBytes - 1) / kSealedPageBytes * kSealedPageBytes;
}

/// A key for this slot alone, so that no nonce of the user's key can repeat.
world::Mac wrapping_key(const SealKey& key, const SealedHead& head, const KeySlot& slot) {
  return world::Hmac(key.bytes()).of({as_bytes(kWrapOf), head.file_id, slot.salt});
}

Bytes format_table(const SealedHead& head) {
  ByteWriter table;
  for (const SealedChunk& chunk : head.chunks) {
    table.put(chunk.at);
    table.put(chunk.stored);
    table.put(chunk.plain);
    table.put_bytes(chunk.tag);
  }
  return std::move(table).take();
}

}  // namespace

DataKey::~DataKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

std::array<std::byte, 48> SealedHead::about(std::uint64_t chunk) const {
  ByteWriter writer;
  writer.put_bytes(file_id);
  writer.put(chunk);
  writer.put(static_cast<std::uint64_t>(chunks.size()));
  writer.put(plain_bytes);
  writer.put(chunks[chunk].plain);
  writer.put(chunks[chunk].stored);
  const Bytes bytes = std::move(writer).take();
  std::array<std::byte, 48> about{};
  CHECK(bytes.size() == about.size());
  std::copy(bytes.begin(), bytes.end(), about.begin());
  return about;
}

std::string SealedHead::key_names() const {
  std::string names;
  for (const std::optional<KeySlot>& slot : slots) {
    if (slot) names += (names.empty() ? "key " : " or key ") + key_id_text(slot->key_id);
  }
  return names.empty() ? "no key at all" : names;
}

std::uint64_t sealed_head_bytes(std::uint64_t chunks) {
  return whole_pages(kOuterBytes + kSealedTableBegin + chunks * kSealedEntryBytes);
}

Bytes format_sealed_head(const SealedHead& head, const std::optional<DataKey>& key) {
  const std::uint64_t size = sealed_head_bytes(head.chunks.size());
  Bytes bytes = sealed_outer_header(head, size - kOuterBytes + head.stored_bytes);
  ByteWriter fixed;
  fixed.put_bytes(as_bytes(kSealedMagic));
  fixed.put(kSealedVersion);
  fixed.put((head.encrypted ? kSealedEncrypted : 0U) | (head.compressed ? kSealedCompressed : 0U));
  fixed.put_bytes(head.file_id);
  fixed.put(head.plain_bytes);
  fixed.put(static_cast<std::uint64_t>(head.chunks.size()));
  fixed.put(head.stored_bytes);
  const Bytes about = std::move(fixed).take();
  CHECK(about.size() == kSealedFixedBytes);
  Bytes table = format_table(head);
  SealTag tag{};
  if (key) {
    tag = SealCipher(key->bytes, SealCipher::Use::Encrypt).encrypt({kTableNonce, 0}, about, table, table);
  } else {
    tag = checksum_tag(crc32c(table, crc32c(about)));
  }
  bytes.resize(size);
  std::byte* const payload = bytes.data() + kOuterBytes;
  std::copy(about.begin(), about.end(), payload);
  std::copy(tag.begin(), tag.end(), payload + kSealedFixedBytes);
  for (std::size_t i = 0; i < kKeySlots; ++i) {
    const Bytes slot = format_slot(head.slots[i]);
    std::copy(slot.begin(), slot.end(), payload + kSealedSlotsBegin + i * kSealedSlotBytes);
  }
  std::copy(table.begin(), table.end(), payload + kSealedTableBegin);
  return bytes;
}

Bytes sealed_outer_header(const SealedHead& head, std::uint64_t payload_bytes) {
  SafetensorsHeader outer;
  outer.metadata[kSealedName] =
      std::string("1 ") + (head.encrypted ? "aes-256-gcm" : "plain") + (head.compressed ? " zstd" : "");
  outer.tensors.push_back(
      {.name = kSealedName, .dtype = "U8", .shape = {payload_bytes}, .begin = 0, .end = payload_bytes});
  outer.data_begin = kOuterBytes;
  Result<Bytes> bytes = format_safetensors_header(outer);
  CHECK(bytes);
  return *std::move(bytes);
}

SealTag checksum_tag(std::uint32_t checksum) {
  SealTag tag{};
  std::memcpy(tag.data(), &checksum, sizeof checksum);
  return tag;
}

std::uint64_t slot_offset(const SealedHead& head, std::size_t slot) {
  return head.payload_begin + kSealedSlotsBegin + slot * kSealedSlotBytes;
}

Bytes format_slot(const std::optional<KeySlot>& slot) {
  Bytes bytes;
  if (slot) {
    ByteWriter writer;
    writer.put(kSealedSlotKind);
    writer.put_bytes(slot->key_id);
    writer.put_bytes(slot->salt);
    writer.put_bytes(slot->wrapped);
    writer.put_bytes(slot->tag);
    bytes = std::move(writer).take();
    bytes.resize(kSealedSlotBytes - sizeof(std::uint32_t));
    const std::uint32_t checksum = crc32c(bytes);
    bytes.resize(kSealedSlotBytes);
    std::memcpy(bytes.data() + bytes.size() - sizeof checksum, &checksum, sizeof checksum);
  }
  bytes.resize(kSealedSlotBytes);
  return bytes;
}

void fill_random(std::span<std::byte> out, world::Random& random) {
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(out.data() + i, &word, std::min(sizeof word, out.size() - i));
  }
}

KeySlot wrap_key(const DataKey& data_key, const SealKey& key, const SealedHead& head, world::Random& random) {
  KeySlot slot;
  slot.key_id = key.id();
  fill_random(slot.salt, random);
  world::Mac wrapping = wrapping_key(key, head, slot);
  slot.tag = SealCipher(wrapping, SealCipher::Use::Encrypt).encrypt({}, head.file_id, data_key.bytes, slot.wrapped);
  OPENSSL_cleanse(wrapping.data(), wrapping.size());
  return slot;
}

std::optional<DataKey> unwrap_key(const KeySlot& slot, const SealKey& key, const SealedHead& head) {
  if (slot.key_id != key.id()) return std::nullopt;
  world::Mac wrapping = wrapping_key(key, head, slot);
  DataKey data_key;
  const bool good =
      SealCipher(wrapping, SealCipher::Use::Decrypt).decrypt({}, head.file_id, slot.wrapped, slot.tag, data_key.bytes);
  OPENSSL_cleanse(wrapping.data(), wrapping.size());
  if (!good) return std::nullopt;
  return data_key;
}

}  // namespace holdfast::store
