// Sealed files that others have damaged or rearranged: each is refused, and nothing of it is handed out.
#include <cstring>

#include "base/crc32c.h"
#include "sim/sim_world.h"
#include "store/sealed_head.h"
#include "store/sealed_layout.h"
#include "store/test_sealed.h"

namespace holdfast::store {
namespace {

class SealedAttack : public SealedTest {
 protected:
  world::World& world() override { return world_; }
  sim::SimWorld world_{1};
};

constexpr std::size_t kMiB = 1 << 20;

const Sealing kEncrypted = {.key = key_of(1), .level = 0};
const Sealing kCompressed = {.key = std::nullopt, .level = 1};
const Sealing kBoth = {.key = key_of(1), .level = 1};

/// A file's head, for tests that change it and write it anew.
SealedHead head_of(world::Disk& disk, const std::string& path, const std::optional<SealKey>& key) {
  const auto file = disk.open(path);
  const auto reader = SealedHeadReader::open(**file);
  return *(*reader)->read(**file, *(*reader)->data_key(key));
}

/// Room for further keys, where a crash may have left anything.
bool empty_slot(std::size_t at) {
  return at >= 512 + kSealedSlotsBegin + kSealedSlotBytes &&
         at < 512 + kSealedSlotsBegin + kKeySlots * kSealedSlotBytes;
}

TEST_F(SealedAttack, AnyFlippedBitIsFound) {
  for (const Sealing& how : {kEncrypted, kCompressed, kBoth}) {
    save(few_sealed(), how);
    const Bytes good = content();
    for (std::size_t i = 0; i < good.size(); ++i) {
      if (how.key && empty_slot(i)) continue;
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(1U << (i % 8));
      put(bad);
      const auto loaded = load(how.key);
      // Without a key, one flip can make it a file of another kind: whose only tensor has another name or type.
      if (loaded && !how.key && loaded->tensors.size() == 1 && i < 512) continue;
      EXPECT_FALSE(loaded) << "byte " << i;
    }
  }
}

TEST_F(SealedAttack, AFileCutShortAnywhereOrWithMoreBehindIsRefused) {
  for (const Sealing& how : {kEncrypted, kCompressed, kBoth}) {
    save(few_sealed(), how);
    const Bytes good = content();
    for (std::size_t size = 0; size < good.size(); ++size) {
      put(BytesView(good).first(size));
      EXPECT_NE(why_refused(how.key), "") << size << " bytes";
    }
    Bytes longer = good;
    longer.push_back(std::byte{0});
    put(longer);
    EXPECT_NE(why_refused(how.key), "");
  }
}

/// The stored bytes and table entry of two data chunks of one file change places.
TEST_F(SealedAttack, SwappedRepeatedAndForeignChunksAreFound) {
  SealedTensors tensors;
  tensors.add("a", 4 * kMiB).add("b", 4 * kMiB);
  save(tensors, kEncrypted);
  const Bytes good = content();
  save(tensors, kEncrypted, "/models/other");
  const Bytes other = content("/models/other");
  const SealedHead head = head_of(disk(), kPath, kEncrypted.key);
  const auto at = [&](std::size_t chunk) {
    return good.begin() + static_cast<std::ptrdiff_t>(head.data_begin + head.chunks[chunk].at);
  };

  Bytes swapped = good;
  std::swap_ranges(swapped.begin() + (at(2) - good.begin()), swapped.begin() + (at(3) - good.begin()),
                   swapped.begin() + (at(3) - good.begin()));
  put(swapped);
  EXPECT_NE(why_refused(kEncrypted.key).find("sealed chunk"), std::string::npos);

  Bytes repeated = good;
  std::copy(at(2), at(3), repeated.begin() + (at(3) - good.begin()));
  put(repeated);
  EXPECT_NE(why_refused(kEncrypted.key).find("sealed chunk 3 "), std::string::npos);

  Bytes foreign = good;
  const auto begin = at(2) - good.begin();
  std::copy_n(other.begin() + begin, kMiB, foreign.begin() + begin);
  put(foreign);
  EXPECT_NE(why_refused(kEncrypted.key).find("sealed chunk 2 "), std::string::npos);
}

// With the data key in hand a table can be written that is right in itself: tags still bind each chunk to its place.
TEST_F(SealedAttack, TagsBindChunksToTheirPlaceEvenUnderTheSameDataKey) {
  SealedTensors tensors;
  tensors.add("a", 4 * kMiB).add("b", 4 * kMiB);
  save(tensors, kEncrypted);
  const Bytes good = content();
  const auto file = disk().open(kPath);
  const auto reader = SealedHeadReader::open(**file);
  const auto data_key = (*reader)->data_key(kEncrypted.key);
  SealedHead head = *(*reader)->read(**file, *data_key);
  const auto rewritten = [&](const SealedHead& changed) {
    Bytes bytes = format_sealed_head(changed, *data_key);
    bytes.insert(bytes.end(), good.begin() + static_cast<std::ptrdiff_t>(head.data_begin), good.end());
    put(bytes);
    return why_refused(kEncrypted.key);
  };
  EXPECT_EQ(rewritten(head), "");
  SealedHead swapped = head;
  std::swap(swapped.chunks[2], swapped.chunks[3]);
  EXPECT_NE(rewritten(swapped).find("sealed chunk"), std::string::npos);
  SealedHead other_id = head;
  other_id.file_id[0] ^= std::byte{1};
  other_id.slots[0] = wrap_key(**data_key, *kEncrypted.key, other_id, world_.random());
  EXPECT_NE(rewritten(other_id).find("sealed chunk 0 "), std::string::npos);
}

TEST_F(SealedAttack, ATableThatDoesNotAddUpIsRefused) {
  SealedTensors tensors;
  tensors.add("a", 4 * kMiB).add("b", 4 * kMiB);
  save(tensors, kCompressed);
  const Bytes good = content();
  const SealedHead head = head_of(disk(), kPath, std::nullopt);
  const auto refused = [&](const std::function<void(SealedHead&)>& change) {
    SealedHead changed = head;
    change(changed);
    Bytes bytes = format_sealed_head(changed, std::nullopt);
    bytes.insert(bytes.end(), good.begin() + static_cast<std::ptrdiff_t>(head.data_begin), good.end());
    put(bytes);
    return why_refused(std::nullopt);
  };
  EXPECT_EQ(refused([](SealedHead&) {}), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.chunks[1].at = bad.chunks[2].at; }), "") << "overlap";
  EXPECT_NE(refused([](SealedHead& bad) { bad.chunks[1].at += std::uint64_t{1} << 63U; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.chunks[1].plain += 1; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.chunks[1].plain = 0; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.chunks[1].plain = 0xffffffffU; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.chunks[1].stored -= 1; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.plain_bytes += 1; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.plain_bytes = ~std::uint64_t{0}; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.stored_bytes += 1; }), "");
  EXPECT_NE(refused([](SealedHead& bad) { bad.chunks.pop_back(); }), "") << "dropped";
  EXPECT_NE(refused([](SealedHead& bad) { bad.compressed = false; }), "");
}

// A bomb: the frame says gigabytes, the table says a megabyte. Nothing above the megabyte is allocated for it.
TEST_F(SealedAttack, AFrameThatClaimsMoreThanItsChunkIsRefused) {
  SealedTensors tensors;
  tensors.add("a", 3 * kMiB);
  save(tensors, kCompressed);
  const Bytes good = content();
  SealedHead head = head_of(disk(), kPath, std::nullopt);
  const auto chunk =
      std::find_if(head.chunks.begin(), head.chunks.end(), [](const SealedChunk& each) { return each.compressed(); });
  ASSERT_NE(chunk, head.chunks.end());
  Bytes data(good.begin() + static_cast<std::ptrdiff_t>(head.data_begin), good.end());
  // Magic number, a descriptor of "content size in 8 bytes, one segment", and that size.
  constexpr std::array<unsigned char, 13> bomb = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0xff, 0, 0, 0};
  std::copy_n(reinterpret_cast<const std::byte*>(bomb.data()), bomb.size(),
              data.begin() + static_cast<std::ptrdiff_t>(chunk->at));
  const BytesView stored = BytesView(data).subspan(chunk->at, chunk->stored);
  chunk->tag = checksum_tag(crc32c(stored));
  Bytes bytes = format_sealed_head(head, std::nullopt);
  bytes.insert(bytes.end(), data.begin(), data.end());
  put(bytes);
  EXPECT_NE(why_refused(std::nullopt).find("does not match its size when decompressed"), std::string::npos);
}

TEST_F(SealedAttack, HeadsThatClaimTheWorldAreRefusedAndAllocateNothing) {
  save(few_sealed(), kCompressed);
  const Bytes good = content();
  for (std::size_t field = 32; field < 56; field += 8) {
    for (const std::uint64_t claim : {~std::uint64_t{0}, std::uint64_t{1} << 62U, std::uint64_t{1} << 40U}) {
      Bytes bad = good;
      std::memcpy(bad.data() + 512 + field, &claim, sizeof claim);
      put(bad);
      EXPECT_NE(why_refused(std::nullopt).find("again"), std::string::npos) << field;
    }
  }
  Bytes later = good;
  later[512 + 8] = std::byte{2};
  put(later);
  EXPECT_NE(why_refused(std::nullopt).find("version 2"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::store
