// Reading a sealed file's head, of which nothing is believed before it is checked.
#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "store/safetensors.h"
#include "store/sealed_head.h"
#include "store/sealed_layout.h"

namespace holdfast::store {
namespace {

Error broken(const std::string& what) {
  return {Code::BadInput, "sealed: " + what + "; fetch or write the file again"};
}

Error damaged(const std::string& what) {
  return {Code::Corrupt, "sealed: " + what + " damaged or changed by others; restore the file from a copy"};
}

bool all_zeros(BytesView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

template <std::size_t size>
std::array<std::byte, size> take(BytesView& bytes) {
  std::array<std::byte, size> taken{};
  std::copy_n(bytes.begin(), size, taken.begin());
  bytes = bytes.subspan(size);
  return taken;
}

/// None: empty, or torn by a crash while it was written.
std::optional<KeySlot> parse_slot(BytesView bytes) {
  constexpr std::size_t kSummed = kSealedSlotBytes - sizeof(std::uint32_t);
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + kSummed, sizeof checksum);
  if (ByteReader(bytes).get<std::uint32_t>() != kSealedSlotKind || crc32c(bytes.first(kSummed)) != checksum) {
    return std::nullopt;
  }
  BytesView rest = bytes.subspan(sizeof kSealedSlotKind);
  KeySlot slot;
  slot.key_id = take<8>(rest);
  slot.salt = take<32>(rest);
  slot.wrapped = take<32>(rest);
  slot.tag = take<16>(rest);
  return slot;
}

Result<std::vector<SealedChunk>> parse_table(BytesView table, const SealedHead& head) {
  std::vector<SealedChunk> chunks(table.size() / kSealedEntryBytes);
  std::uint64_t plain_bytes = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const BytesView entry = table.subspan(i * kSealedEntryBytes, kSealedEntryBytes);
    ByteReader reader(entry);
    SealedChunk& chunk = chunks[i];
    chunk.at = reader.get<std::uint64_t>();
    chunk.stored = reader.get<std::uint32_t>();
    chunk.plain = reader.get<std::uint32_t>();
    std::copy_n(entry.end() - static_cast<std::ptrdiff_t>(chunk.tag.size()), chunk.tag.size(), chunk.tag.begin());
    const std::string name = "chunk " + std::to_string(i);
    if (chunk.plain == 0 || chunk.plain > kSealedChunkBytes || chunk.stored == 0 || chunk.stored > chunk.plain) {
      return broken(name + " has an impossible size");
    }
    if (chunk.compressed() && !head.compressed) return broken(name + " is compressed in a file that is not");
    plain_bytes += chunk.plain;
  }
  if (plain_bytes != head.plain_bytes) return broken("the chunks do not make up what the file says it holds");
  std::vector<const SealedChunk*> by_place;
  for (const SealedChunk& chunk : chunks) by_place.push_back(&chunk);
  std::sort(by_place.begin(), by_place.end(), [](const SealedChunk* a, const SealedChunk* b) { return a->at < b->at; });
  std::uint64_t end = 0;
  for (const SealedChunk* chunk : by_place) {
    if (chunk->at != end) return broken("a hole or an overlap at byte " + std::to_string(end) + " of the chunks");
    end += chunk->stored;
  }
  if (end != head.stored_bytes) return broken("the chunks end before the file does");
  return chunks;
}

bool looks_sealed(const SafetensorsHeader& outer) {
  return outer.tensors.size() == 1 && outer.tensors[0].name == kSealedName && outer.tensors[0].dtype == "U8" &&
         outer.metadata.contains(kSealedName);
}

}  // namespace

Result<std::optional<SealedHeadReader>> SealedHeadReader::open(world::ReadableFile& file) {
  using None = std::optional<SealedHeadReader>;
  Bytes first(std::min(file.size(), kSealedPageBytes));
  TRY(file.read_at(0, first), "read the start");
  const Result<std::uint64_t> payload_begin = safetensors_prefix_bytes(first, file.size());
  // What is no safetensors file at all is for the reader of those to tell.
  if (!payload_begin || *payload_begin > first.size()) return None();
  const BytesView prefix = BytesView(first).first(*payload_begin);
  if (as_text(prefix).find(kSealedName) == std::string_view::npos) return None();
  const Result<SafetensorsHeader> outer = parse_safetensors_header(prefix, file.size());
  if (!outer || !looks_sealed(*outer)) return None();
  const std::uint64_t payload_bytes = file.size() - *payload_begin;
  if (payload_bytes < kSealedTableBegin) return broken("the file has no room for what it must hold");
  SealedHeadReader reader;
  reader.head_.payload_begin = *payload_begin;
  BytesView fixed = BytesView(first).subspan(prefix.size());
  Bytes whole;
  if (fixed.size() < kSealedTableBegin) {
    whole.resize(kSealedTableBegin);
    TRY(file.read_at(*payload_begin, whole), "read the head");
    fixed = whole;
  }
  TRY(reader.parse(fixed.first(kSealedTableBegin), payload_bytes), "head");
  const Bytes written = sealed_outer_header(reader.head_, payload_bytes);
  if (!std::equal(prefix.begin(), prefix.end(), written.begin(), written.end())) return damaged("its header is");
  return None(std::move(reader));
}

Status SealedHeadReader::parse(BytesView fixed, std::uint64_t payload_bytes) {
  BytesView rest = fixed.subspan(kSealedMagic.size());
  ByteReader reader(rest);
  const auto version = reader.get<std::uint32_t>();
  const auto flags = reader.get<std::uint32_t>();
  if (as_text(fixed.first(kSealedMagic.size())) != kSealedMagic) return broken("it does not begin as sealed files do");
  if (version != kSealedVersion || (flags & ~(kSealedEncrypted | kSealedCompressed)) != 0) {
    return Error(Code::BadInput, "sealed: version " + std::to_string(version) + " with flags " + std::to_string(flags) +
                                     " is not known here; read it with a newer holdfast");
  }
  head_.encrypted = (flags & kSealedEncrypted) != 0;
  head_.compressed = (flags & kSealedCompressed) != 0;
  rest = rest.subspan(sizeof version + sizeof flags);
  head_.file_id = take<16>(rest);
  ByteReader sizes(rest);
  head_.plain_bytes = sizes.get<std::uint64_t>();
  chunk_count_ = sizes.get<std::uint64_t>();
  head_.stored_bytes = sizes.get<std::uint64_t>();
  std::copy_n(fixed.begin() + kSealedFixedBytes, table_tag_.size(), table_tag_.begin());
  fixed_.assign(fixed.begin(), fixed.begin() + kSealedFixedBytes);
  // The table first: all other numbers are bounded by how many entries there is room for.
  if (chunk_count_ == 0 || chunk_count_ > (payload_bytes - kSealedTableBegin) / kSealedEntryBytes ||
      chunk_count_ > kSealedChunksMax) {
    return broken("it claims " + std::to_string(chunk_count_) + " chunks, more than the file holds: is it cut off?");
  }
  if (head_.plain_bytes > chunk_count_ * kSealedChunkBytes || head_.stored_bytes > payload_bytes) {
    return broken("it claims more bytes than its chunks can hold: is it cut off?");
  }
  const std::uint64_t table_end = kSealedTableBegin + chunk_count_ * kSealedEntryBytes;
  const std::uint64_t data_begin = payload_bytes - head_.stored_bytes;
  if (data_begin < table_end || data_begin - table_end >= kSealedPageBytes) {
    return broken("its chunks do not begin behind their table: is it cut off?");
  }
  head_.data_begin = head_.payload_begin + data_begin;
  for (std::size_t i = 0; i < kKeySlots; ++i) {
    head_.slots[i] = parse_slot(fixed.subspan(kSealedSlotsBegin + i * kSealedSlotBytes, kSealedSlotBytes));
  }
  const std::uint64_t tag_end = kSealedFixedBytes + table_tag_.size();
  const std::uint64_t slots_end =
      head_.encrypted ? kSealedSlotsBegin + kKeySlots * kSealedSlotBytes : kSealedSlotsBegin;
  if (!all_zeros(fixed.subspan(tag_end, kSealedSlotsBegin - tag_end)) || !all_zeros(fixed.subspan(slots_end))) {
    return damaged("its head is");
  }
  return Ok{};
}

Result<std::optional<DataKey>> SealedHeadReader::data_key(const std::optional<SealKey>& key) const {
  if (!head_.encrypted) return std::optional<DataKey>();
  const std::string locked = "it is encrypted for " + head_.key_names();
  if (!key) {
    return Error(Code::BadInput, locked + " and no key was given; give one with key= in Python, and with --key-file, " +
                                     "--key-env or --key-command at the command line");
  }
  bool named = false;
  for (const std::optional<KeySlot>& slot : head_.slots) {
    if (!slot || slot->key_id != key->id()) continue;
    named = true;
    if (std::optional<DataKey> found = unwrap_key(*slot, *key, head_)) return found;
  }
  if (named) return damaged("the slot of key " + key_id_text(key->id()) + " is");
  return Error(Code::BadInput, locked + ", and key " + key_id_text(key->id()) + " was given; give the right key");
}

Result<SealedHead> SealedHeadReader::read(world::ReadableFile& file, const std::optional<DataKey>& key) const {
  Bytes table(head_.data_begin - head_.payload_begin - kSealedTableBegin);
  TRY(file.read_at(head_.payload_begin + kSealedTableBegin, table), "read the table of chunks");
  const std::span<std::byte> entries = std::span(table).first(chunk_count_ * kSealedEntryBytes);
  if (!all_zeros(BytesView(table).subspan(entries.size()))) return damaged("what lies behind the table of chunks is");
  const bool good = key ? SealCipher(key->bytes, SealCipher::Use::Decrypt)
                              .decrypt({kTableNonce, 0}, fixed_, entries, table_tag_, entries)
                        : checksum_tag(crc32c(entries, crc32c(fixed_))) == table_tag_;
  if (!good) return damaged("the table of chunks or what stands before it is");
  SealedHead head = head_;
  head.chunks = TRY(parse_table(entries, head), "table of chunks");
  return head;
}

}  // namespace holdfast::store
