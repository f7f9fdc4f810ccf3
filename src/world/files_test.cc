#include "world/files.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace holdfast::world {
namespace {

TEST(Pieces, CoverTheFileOnce) {
  for (const Pieces pieces : {Pieces{.head = 0, .piece = 4, .total = 0}, Pieces{.head = 3, .piece = 4, .total = 3},
                              Pieces{.head = 3, .piece = 4, .total = 7}, Pieces{.head = 3, .piece = 4, .total = 8},
                              Pieces{.head = 8, .piece = 4, .total = 37}}) {
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < pieces.count(); ++i) {
      EXPECT_EQ(pieces.begin(i), at);
      EXPECT_TRUE(i == 0 || pieces.end(i) > at);
      at = pieces.end(i);
    }
    EXPECT_EQ(at, pieces.total);
  }
}

class Counting : public ReadableFile {
 public:
  std::uint64_t size() const override { return 100; }
  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset + out.size() > size()) return Error(Code::Corrupt, "ends before");
    for (std::byte& byte : out) byte = static_cast<std::byte>(offset++);
    return Ok{};
  }
};

TEST(ReadBlocks, FillsEachAndSaysSo) {
  for (const unsigned threads : {1U, 3U}) {
    Counting file;
    Bytes memory(100);
    std::vector<BlockRead> blocks;
    for (std::size_t at = 0; at < 100; at += 10) blocks.push_back({at, std::span(memory).subspan(at, 10)});
    std::vector<std::atomic<int>> seen(blocks.size());
    ASSERT_TRUE(file.read_blocks(blocks, threads, [&](std::size_t i) {
      EXPECT_EQ(blocks[i].into.front(), static_cast<std::byte>(i * 10));
      ++seen[i];
      return Status(Ok{});
    }));
    for (const auto& each : seen) EXPECT_EQ(each, 1);
  }
}

TEST(ReadBlocks, StopsAtTheFirstError) {
  Counting file;
  Bytes memory(30);
  const std::span<std::byte> all(memory);
  const std::vector<BlockRead> blocks = {{0, all.first(10)}, {95, all.subspan(10, 10)}, {10, all.subspan(20, 10)}};
  std::size_t arrived = 0;
  const Status done = file.read_blocks(blocks, 1, [&](std::size_t) {
    ++arrived;
    return Status(Ok{});
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Corrupt);
  EXPECT_EQ(arrived, 1U);
  const Status refused = file.read_blocks(blocks, 1, [](std::size_t) { return Error(Code::BadInput, "no"); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::BadInput);
}

}  // namespace
}  // namespace holdfast::world
