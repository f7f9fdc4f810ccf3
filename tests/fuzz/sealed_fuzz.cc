// Any bytes as a sealed file, with and without a key, and once more with its sums put right, so that what they guard is
// met too: refused in bounded memory, or loaded whole and in parts alike.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "one_file.h"
#include "store/sealed_file.h"
#include "store/sealed_head.h"
#include "store/sealed_layout.h"
#include "store/tensor_file.h"

namespace {

using holdfast::Bytes;
using holdfast::BytesView;
using holdfast::Code;
using holdfast::Error;
using holdfast::Result;
using holdfast::Status;
namespace store = holdfast::store;
namespace world = holdfast::world;

constexpr std::size_t kOuterBytes = 512;

template <typename Integer>
Integer get(const Bytes& bytes, std::size_t at) {
  Integer value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// A file without encryption whose header and sums fit what it holds.
Bytes with_right_sums(Bytes bytes) {
  constexpr std::size_t kTable = kOuterBytes + store::kSealedTableBegin;
  if (bytes.size() < kTable) return bytes;
  store::SealedHead head;
  head.compressed = (get<std::uint32_t>(bytes, kOuterBytes + 12) & store::kSealedCompressed) != 0;
  const Bytes outer = store::sealed_outer_header(head, bytes.size() - kOuterBytes);
  std::copy(outer.begin(), outer.end(), bytes.begin());
  bytes[kOuterBytes + 12] &= static_cast<std::byte>(~store::kSealedEncrypted);
  const auto chunks = get<std::uint64_t>(bytes, kOuterBytes + 40);
  const auto stored_bytes = get<std::uint64_t>(bytes, kOuterBytes + 48);
  if (chunks > (bytes.size() - kTable) / store::kSealedEntryBytes || stored_bytes > bytes.size()) return bytes;
  const std::size_t data = bytes.size() - stored_bytes;
  for (std::size_t i = 0; i < chunks; ++i) {
    const std::size_t entry = kTable + i * store::kSealedEntryBytes;
    const auto at = get<std::uint64_t>(bytes, entry);
    const auto stored = get<std::uint32_t>(bytes, entry + 8);
    if (at > stored_bytes || stored > stored_bytes - at) continue;
    const store::SealTag tag = store::checksum_tag(holdfast::crc32c(BytesView(bytes).subspan(data + at, stored)));
    std::memcpy(bytes.data() + entry + 16, tag.data(), tag.size());
  }
  const BytesView fixed = BytesView(bytes).subspan(kOuterBytes, store::kSealedFixedBytes);
  const BytesView table = BytesView(bytes).subspan(kTable, chunks * store::kSealedEntryBytes);
  const store::SealTag tag = store::checksum_tag(holdfast::crc32c(table, holdfast::crc32c(fixed)));
  std::memcpy(bytes.data() + kOuterBytes + store::kSealedFixedBytes, tag.data(), tag.size());
  return bytes;
}

void read(BytesView content, const std::optional<store::SealKey>& key) {
  holdfast::fuzz::OneFile one(content);
  store::UnsealedFiles files(one, key);
  const auto about = store::read_sealed_about(one, "/f");
  const auto verified = store::verify_tensor_file(files, "/f", 1);
  const auto loaded = store::load_tensor_file(files, "/f", std::nullopt, 1);
  CHECK(static_cast<bool>(verified) == static_cast<bool>(loaded));
  CHECK(!loaded || about);
  if (!loaded) {
    CHECK(verified.error().message() == loaded.error().message());
    return;
  }
  for (const auto& tensor : loaded->tensors) {
    const auto alone = store::load_tensor_file(files, "/f", {{tensor.name}}, 1);
    CHECK(alone && alone->tensors.size() == 1);
    const BytesView here = loaded->bytes(tensor);
    const BytesView there = alone->bytes(alone->tensors[0]);
    CHECK(std::equal(here.begin(), here.end(), there.begin(), there.end()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<std::byte, store::SealKey::kBytes> key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  const BytesView content = std::as_bytes(std::span(data, size));
  read(content, std::nullopt);
  read(content, store::SealKey(key));
  read(with_right_sums(Bytes(content.begin(), content.end())), std::nullopt);
  return 0;
}
