// Changing the key of a sealed file in place: the new key's slot is on stable storage before the old one's is blanked.
#include <algorithm>

#include "store/sealed_file.h"
#include "store/sealed_head.h"

namespace holdfast::store {
namespace {

Status put_slot(world::WritableFile& file, const SealedHead& head, std::size_t index,
                const std::optional<KeySlot>& slot) {
  TRY(file.write_at(slot_offset(head, index), format_slot(slot)), "write key slot " + std::to_string(index));
  return file.sync();
}

/// Slots of `key`, in `head`.
std::vector<std::size_t> slots_of(const SealedHead& head, const SealKey& key) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < kKeySlots; ++i) {
    if (head.slots[i] && head.slots[i]->key_id == key.id()) found.push_back(i);
  }
  return found;
}

bool opens(const SealedHead& head, const SealKey& key) {
  const std::vector<std::size_t> slots = slots_of(head, key);
  return std::any_of(slots.begin(), slots.end(),
                     [&](std::size_t i) { return unwrap_key(*head.slots[i], key, head).has_value(); });
}

Status add_key(world::WritableFile& file, const SealedHead& head, const SealKey& fresh, const DataKey& data_key,
               world::Random& random) {
  // A damaged slot of this very key is the best to write over, then one that is empty.
  const std::vector<std::size_t> spoilt = slots_of(head, fresh);
  const auto empty = std::find(head.slots.begin(), head.slots.end(), std::nullopt);
  if (spoilt.empty() && empty == head.slots.end()) {
    return Error(Code::BadInput, "all key slots are taken, by " + head.key_names() +
                                     "; change one of these keys to one "
                                     "of the others first, which frees a slot");
  }
  const std::size_t slot = spoilt.empty() ? static_cast<std::size_t>(empty - head.slots.begin()) : spoilt.front();
  return put_slot(file, head, slot, wrap_key(data_key, fresh, head, random));
}

Status rekey(world::Disk& disk, const std::string& path, const SealKey& old, const SealKey& fresh,
             world::Random& random) {
  const std::unique_ptr<world::ReadableFile> readable = TRY(disk.open(path), "open");
  const std::optional<SealedHeadReader> reader = TRY(SealedHeadReader::open(*readable), "open");
  if (!reader || !reader->head().encrypted) return Error(Code::BadInput, "is not encrypted, so it has no key");
  if (old.id() == fresh.id()) return Error(Code::BadInput, "the new key is the old one");
  const SealedHead& head = reader->head();
  const bool has_fresh = opens(head, fresh);
  // A crash may have come after the last write of the same call.
  if (has_fresh && slots_of(head, old).empty()) return Ok{};
  const std::optional<DataKey> data_key = TRY(reader->data_key(has_fresh ? fresh : old), "open");
  (void)TRY(reader->read(*readable, data_key), "open");  // nothing is changed in a file that is damaged
  const std::unique_ptr<world::WritableFile> file = TRY(disk.change(path), "open for writing");
  if (!has_fresh) TRY(add_key(*file, head, fresh, *data_key, random), "add the new key");
  for (const std::size_t slot : slots_of(head, old))
    TRY(put_slot(*file, head, slot, std::nullopt), "remove the old key");
  return Ok{};
}

}  // namespace

Status rekey_sealed_file(world::Disk& disk, const std::string& path, const SealKey& old, const SealKey& fresh,
                         world::Random& random) {
  TRY(rekey(disk, path, old, fresh, random), path);
  return Ok{};
}

}  // namespace holdfast::store
