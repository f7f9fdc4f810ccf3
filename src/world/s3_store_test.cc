#include "world/s3_store.h"

#include <gtest/gtest.h>

#include <atomic>

#include "world/s3_server_fixture.h"
#include "world/s3_upload.h"

namespace holdfast::world {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

class S3StoreTest : public testing::Test {
 protected:
  ObjectStore& store() { return *store_; }
  static std::vector<std::string> keys(const Result<std::vector<ObjectInfo>>& listed) {
    EXPECT_TRUE(listed) << listed.error().message();
    std::vector<std::string> found;
    for (const ObjectInfo& each : *listed) found.push_back(each.key);
    return found;
  }
  std::string content(const std::string& key) {
    const auto bytes = store().get(key, kMiB);
    return bytes ? std::string(as_text(*bytes)) : bytes.error().message();
  }
  /// Writes an object of two parts, the second of one byte.
  Result<std::unique_ptr<NewFile>> written(const std::string& key, char letter, const PutCondition& condition) {
    const std::uint64_t piece = store().piece_bytes(9 * kMiB);
    auto file = store().begin(key, {.head = 0, .piece = piece, .total = piece + 1}, condition);
    if (!file) return file;
    const std::string text(piece, letter);
    for (const std::uint64_t index : {1U, 0U}) {
      Status done = (*file)->write(index, as_bytes(text).first(index == 0 ? piece : 1));
      if (!done) return std::move(done).error();
    }
    return file;
  }

  S3Server server_{HOLDFAST_SERVERS "/versitygw"};
  std::unique_ptr<World> world_ = make_real_world();
  HttpClient client_{world_->random(), {}};
  std::unique_ptr<ObjectStore> store_ = make_s3_store(client_, world_->random(), server_.settings(), "models", {});
};

TEST_F(S3StoreTest, GivesBackWhatWasPut) {
  for (const std::string key : {"a", "dir/b c", "ü+%&=?#"}) {
    ASSERT_TRUE(store().put(key, as_bytes(key), {}));
    EXPECT_EQ(content(key), key);
  }
  ASSERT_TRUE(store().put("a", as_bytes("other"), {}));
  EXPECT_EQ(content("a"), "other");
  ASSERT_TRUE(store().put("none", {}, {}));
  EXPECT_EQ(content("none"), "");
}

TEST_F(S3StoreTest, GetsNothingLargerThanItsBound) {
  ASSERT_TRUE(store().put("a", as_bytes("12345"), {}));
  EXPECT_TRUE(store().get("a", 5));
  const auto refused = store().get("a", 4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::BadInput);
}

TEST_F(S3StoreTest, ListsByPrefixOverAsManyPagesAsItTakes) {
  std::vector<std::string> wanted;
  for (int i = 0; i < 1005; ++i) wanted.push_back("many/" + std::to_string(10'000 + i));
  for (const std::string& key : wanted) ASSERT_TRUE(store().put(key, {}, {}));
  ASSERT_TRUE(store().put("other & one", as_bytes("xyz"), {}));
  EXPECT_EQ(keys(store().list("many/", 2000)), wanted);
  EXPECT_EQ(keys(store().list("many/1000", 2000)).size(), 10U);
  EXPECT_TRUE(keys(store().list("none", 2000)).empty());
  const auto other = store().list("other & ", 1);
  EXPECT_EQ(keys(other), std::vector<std::string>{"other & one"});
  EXPECT_EQ(other->front().size, 3U);
  EXPECT_FALSE(other->front().etag.empty());
  const auto refused = store().list("", 1005);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::BadInput);
}

TEST_F(S3StoreTest, RemovesAndMindsNotWhereThereIsNone) {
  ASSERT_TRUE(store().put("a", as_bytes("x"), {}));
  EXPECT_TRUE(store().remove("a"));
  EXPECT_TRUE(store().remove("a"));
  const auto gone = store().get("a", kMiB);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::NotFound);
}

TEST_F(S3StoreTest, PutsOnlyWhereTheConditionHolds) {
  const PutCondition absent{.absent = true, .etag = ""};
  const auto first = store().put("pointer", as_bytes("1"), absent);
  ASSERT_TRUE(first) << first.error().message();
  const auto second = store().put("pointer", as_bytes("2"), absent);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::Conflict);
  const auto moved = store().put("pointer", as_bytes("3"), {.absent = false, .etag = *first});
  ASSERT_TRUE(moved) << moved.error().message();
  const auto stale = store().put("pointer", as_bytes("4"), {.absent = false, .etag = *first});
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::Conflict);
  EXPECT_EQ(content("pointer"), "3");
}

TEST_F(S3StoreTest, OfTwoWritersOfOneNewObjectOneWins) {
  const PutCondition absent{.absent = true, .etag = ""};
  auto one = written("k", '1', absent);
  auto other = written("k", '2', absent);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(store().get("k", kMiB).error().code(), Code::NotFound);  // neither shows before it is committed
  ASSERT_TRUE((*other)->commit());
  const Status late = (*one)->commit();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::Conflict);
  Bytes start(3);
  ASSERT_TRUE((*store().open("k"))->read_at(0, start));
  EXPECT_EQ(as_text(start), "222");
}

TEST_F(S3StoreTest, LeavesNothingOfWhatIsNotCommitted) {
  ASSERT_TRUE(written("k", '1', {}));
  EXPECT_TRUE(keys(store().list("", 10)).empty());
  ASSERT_TRUE((*written("k", '2', {}))->commit());
  EXPECT_EQ((*store().open("k"))->size(), 8 * kMiB + 1);
}

TEST_F(S3StoreTest, FillsBlocksOnManyConnectionsAndThreads) {
  Bytes content(3 * kMiB);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7 + i / 251);
  ASSERT_TRUE(store().put("k", content, {}));
  RemoteFilePolicy policy;
  policy.head_bytes = 100;
  policy.ranges = {.connections = 6, .range_bytes = 300'000, .range_bytes_min = 1000, .gap_bytes_max = 10};
  const auto small = make_s3_store(client_, world_->random(), server_.settings(), "models", policy);
  const auto file = small->open("k");
  ASSERT_TRUE(file);
  Bytes memory(content.size());
  std::vector<BlockRead> blocks;
  for (std::size_t at = 0; at < content.size(); at += 70'001) {
    const std::size_t size = std::min<std::size_t>(70'000, content.size() - at);
    blocks.push_back({at, std::span(memory).subspan(at, size)});
  }
  std::vector<std::atomic<int>> seen(blocks.size());
  const auto matches = [&](std::size_t i) {
    ++seen[i];
    const BlockRead& block = blocks[i];
    const bool same = std::equal(block.into.begin(), block.into.end(), content.data() + block.offset);
    return same ? Status(Ok{}) : Status(Error(Code::Corrupt, "block " + std::to_string(i)));
  };
  const Status filled = (*file)->read_blocks(blocks, 3, matches);
  EXPECT_TRUE(filled) << filled.error().message();
  for (const auto& each : seen) EXPECT_EQ(each, 1);
  const Status refused = (*file)->read_blocks(
      blocks, 3, [](std::size_t i) { return i == 20 ? Status(Error(Code::BadInput, "not this one")) : Status(Ok{}); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "not this one");
  EXPECT_EQ((*file)->read_at(content.size() - 1, std::span(memory).first(2)).error().code(), Code::Corrupt);
}

TEST(S3Checksum, IsBigEndianBase64) {
  EXPECT_EQ(base64_of(0xE3069283U), "4waSgw==");
  EXPECT_EQ(base64_of(0), "AAAAAA==");
}

TEST(S3Pieces, AreNeverMoreThanS3Takes) {
  for (const std::uint64_t total : {std::uint64_t{0}, kMiB, 8 * kMiB, 80'000 * kMiB, 5'000'000 * kMiB}) {
    const Pieces pieces{.head = 100, .piece = s3_piece_bytes(total), .total = total};
    EXPECT_LE(pieces.count(), 10'000U) << total;
    EXPECT_GE(pieces.piece, 8 * kMiB);
    EXPECT_EQ(pieces.piece % kMiB, 0U);
  }
}

}  // namespace
}  // namespace holdfast::world
