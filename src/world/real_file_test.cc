#include "world/real_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>

#include "world/direct_file.h"
#include "world/fd.h"
#include "world/page_memory.h"
#include "world/real_disk.h"
#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

std::byte byte_at(std::uint64_t offset) { return static_cast<std::byte>(offset * 31 + offset / 4096 + offset / 251); }

Bytes pattern(std::uint64_t begin, std::uint64_t size) {
  Bytes bytes(size);
  for (std::uint64_t i = 0; i < size; ++i) bytes[i] = byte_at(begin + i);
  return bytes;
}

/// On the disk, and on a file system in memory, which keeps all in the page cache.
class RealFileTest : public testing::TestWithParam<bool> {
 protected:
  RealFileTest() : path_(GetParam() ? "/dev/shm/holdfast-test-" + std::to_string(::getpid()) : dir_.path("file")) {}
  ~RealFileTest() override { (void)disk_.remove(path_); }

  void write(std::uint64_t size) {
    auto file = disk_.create(path_);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append(pattern(0, size)));
    ASSERT_TRUE((*file)->sync());
  }
  void evict() const {
    const Fd fd(::open(path_.c_str(), O_RDONLY));
    ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
  /// Reads all of [begin, end) in blocks of `block` into memory that begins `phase` bytes behind a page's start.
  void expect_reads(std::uint64_t begin, std::uint64_t end, std::uint64_t block, std::uint64_t phase) {
    SCOPED_TRACE(testing::Message() << begin << " to " << end << " by " << block << ", phase " << phase);
    const PageMemory memory(end - begin + phase + 1);
    std::memset(memory.all().data(), 0x5A, memory.all().size());
    std::vector<BlockRead> blocks;
    for (std::uint64_t at = begin; at < end; at += block) {
      blocks.push_back({at, memory.all().subspan(phase + at - begin, std::min(block, end - at))});
    }
    std::vector<std::atomic<int>> seen(blocks.size());
    const auto file = disk_.open(path_);
    ASSERT_TRUE(file);
    const Status done = (*file)->read_blocks(blocks, 2, [&](std::size_t i) {
      ++seen[i];
      EXPECT_EQ(blocks[i].into.front(), byte_at(blocks[i].offset));
      return Status(Ok{});
    });
    ASSERT_TRUE(done) << done.error().message();
    for (const auto& each : seen) EXPECT_EQ(each, 1);
    const Bytes wanted = pattern(begin, end - begin);
    EXPECT_EQ(std::memcmp(memory.all().data() + phase, wanted.data(), wanted.size()), 0);
    EXPECT_EQ(memory.all().back(), std::byte{0x5A});
  }

  TempDir dir_;
  RealDisk disk_;
  std::string path_;
};

// S15, S31: however places and memory are aligned, the bytes are right, whether the page cache holds them or not.
TEST_P(RealFileTest, ReadsBlocksOfAnyAlignmentInAndPastThePageCache) {
  constexpr std::uint64_t kSize = (std::uint64_t{6} << 20U) + 777;
  write(kSize);
  for (const bool cold : {true, false}) {
    for (const std::uint64_t begin : {0U, 4096U, 8U, 5000U}) {
      for (const std::uint64_t phase : {0U, 8U, 904U}) {
        if (cold) evict();
        expect_reads(begin, kSize, std::uint64_t{1} << 20U, phase);
      }
    }
    if (cold) evict();
    expect_reads(0, kSize, 5000, 0);
    if (cold) evict();
    expect_reads(4096, kSize - 4096, kSize, 0);
  }
}

TEST_P(RealFileTest, ReadsWhatIsPartlyInThePageCache) {
  constexpr std::uint64_t kSize = std::uint64_t{16} << 20U;
  write(kSize);
  evict();
  const auto file = disk_.open(path_);
  Bytes part(std::size_t{5} << 20U);
  ASSERT_TRUE((*file)->read_at(std::uint64_t{3} << 20U, part));
  expect_reads(0, kSize, std::uint64_t{1} << 20U, 0);
}

TEST_P(RealFileTest, CallsBlocksBeyondTheEndCorrupt) {
  write(std::uint64_t{2} << 20U);
  for (const std::uint64_t phase : {0U, 8U}) {
    evict();
    const PageMemory memory(std::size_t{4} << 20U);
    const std::vector<BlockRead> blocks = {
        {0, memory.all().subspan(phase, std::size_t{2} << 20U)},
        {std::uint64_t{1} << 20U, memory.all().subspan((std::size_t{2} << 20U) + phase, (1U << 20U) + 1)}};
    const auto file = disk_.open(path_);
    const Status done = (*file)->read_blocks(blocks, 2, [](std::size_t) { return Status(Ok{}); });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::Corrupt);
    EXPECT_NE(done.error().message().find(path_ + ": ends before byte"), std::string::npos);
  }
}

TEST_P(RealFileTest, StopsAtTheFirstErrorOfWhoeverTakesBlocks) {
  write(std::uint64_t{8} << 20U);
  evict();
  const PageMemory memory(std::size_t{8} << 20U);
  std::vector<BlockRead> blocks;
  for (std::size_t i = 0; i < 8; ++i) blocks.push_back({i << 20U, memory.all().subspan(i << 20U, 1U << 20U)});
  const auto file = disk_.open(path_);
  const Status done = (*file)->read_blocks(
      blocks, 2, [](std::size_t i) { return i == 2 ? Status(Error(Code::Corrupt, "damaged")) : Status(Ok{}); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "damaged");
}

/// Writes a file of `total` bytes in pieces, from memory `phase` bytes behind a page's start.
void expect_writes(Disk& disk, const std::string& path, const Pieces& pieces, std::uint64_t phase) {
  SCOPED_TRACE(testing::Message() << pieces.total << " bytes, head " << pieces.head << ", phase " << phase);
  auto file = disk.begin(path, ".aside", pieces);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(disk.exists(path + ".aside"));
  for (std::uint64_t i = pieces.count(); i-- > 0;) {
    const Bytes bytes = pattern(pieces.begin(i), pieces.end(i) - pieces.begin(i));
    const PageMemory memory(bytes.size() + phase + 1);
    std::copy(bytes.begin(), bytes.end(), memory.all().begin() + static_cast<std::ptrdiff_t>(phase));
    const Status done = (*file)->write(i, memory.all().subspan(phase, bytes.size()));
    ASSERT_TRUE(done) << done.error().message();
  }
  const Status done = (*file)->commit();
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_FALSE(disk.exists(path + ".aside"));
  EXPECT_EQ(*read_file(disk, path, pieces.total), pattern(0, pieces.total));
}

TEST_P(RealFileTest, WritesPiecesOfAnySizePastThePageCache) {
  for (const std::uint64_t head : {std::uint64_t{4096}, std::uint64_t{100}}) {
    for (const std::uint64_t tail : {0U, 1U, 5001U}) {
      for (const std::uint64_t phase : {0U, 64U}) {
        const std::uint64_t total = head + (std::uint64_t{5} << 20U) + tail;
        expect_writes(disk_, path_, {.head = head, .piece = std::uint64_t{2} << 20U, .total = total}, phase);
      }
    }
  }
  expect_writes(disk_, path_, {.head = 8, .piece = std::uint64_t{1} << 20U, .total = 20}, 0);
}

TEST_P(RealFileTest, EndsAFileWhereTheLastOfWhatWasWrittenDoes) {
  auto file = disk_.begin(path_, ".aside", {.head = 0, .piece = 1U << 22U, .total = 1U << 24U});
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(1, pattern(1U << 22U, 777)));
  ASSERT_TRUE((*file)->write(0, pattern(0, 1U << 22U)));
  ASSERT_TRUE((*file)->commit());
  EXPECT_EQ(*read_file(disk_, path_, 1U << 24U), pattern(0, (1U << 22U) + 777));
}

// S36.
TEST_P(RealFileTest, GivesWhatItWritesTheModeOfAnyOtherFile) {
  const mode_t before = ::umask(027);
  expect_writes(disk_, path_, {.head = 0, .piece = std::uint64_t{2} << 20U, .total = std::uint64_t{5} << 20U}, 0);
  ::umask(before);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), static_cast<std::filesystem::perms>(0640));
}

TEST_P(RealFileTest, LeavesNothingOfAFileThatIsNotCommitted) {
  {
    auto file = disk_.begin(path_, ".aside", {.head = 0, .piece = 1U << 22U, .total = 1U << 23U});
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(1, pattern(0, 1U << 22U)));
  }
  EXPECT_FALSE(disk_.exists(path_ + ".aside"));
  EXPECT_FALSE(disk_.exists(path_));
}

TEST_P(RealFileTest, HasNoRoomForAFileLargerThanTheDisk) {
  const auto file = disk_.begin(path_, ".aside", {.head = 0, .piece = 1U << 22U, .total = std::uint64_t{1} << 43U});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Code::Unavailable);
  EXPECT_NE(file.error().message().find(path_ + ".aside"), std::string::npos);
  EXPECT_FALSE(disk_.exists(path_ + ".aside"));
}

INSTANTIATE_TEST_SUITE_P(OnDiskAndInMemory, RealFileTest, testing::Bool());

}  // namespace
}  // namespace holdfast::world
