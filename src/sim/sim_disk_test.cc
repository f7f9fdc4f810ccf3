// What a simulated disk keeps, loses and refuses.
#include "sim/sim_disk.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "sim/seeds.h"
#include "sim/sim_world.h"

namespace holdfast::sim {
namespace {

Status write(SimWorld& world, const std::string& path, const std::string& text, bool sync = true) {
  auto file = TRY(world.disk().create(path), "test");
  TRY(file->append(as_bytes(text)), "test");
  return sync ? file->sync() : Status(Ok{});
}

std::string read(SimWorld& world, const std::string& path) {
  const auto bytes = world::read_file(world.disk(), path, 1048576);
  return bytes ? std::string(as_text(*bytes)) : std::string(code_name(bytes.error().code()));
}

/// For tests of what can happen at all: one seed alone can't show it.
std::vector<std::uint64_t> always(std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  return all;
}

/// A directory that lasts.
void make_ckpt(SimWorld& world) {
  ASSERT_TRUE(world.disk().make_dirs("/ckpt"));
  ASSERT_TRUE(world.disk().sync_dir("/"));
}

TEST(SimDisk, ReadsWhatWasWritten) {
  SimWorld world(1);
  make_ckpt(world);
  ASSERT_TRUE(write(world, "/ckpt/a", "weights"));
  EXPECT_EQ(read(world, "/ckpt/a"), "weights");
  EXPECT_EQ(*world.disk().list("/ckpt"), std::vector<std::string>{"a"});
}

TEST(SimDisk, SyncedBytesUnderASyncedNameOutliveEveryCrash) {
  for (const std::uint64_t seed : seeds(200)) {
    HOLDFAST_SIM_TRACE(seed);
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "weights"));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    world.restart();
    EXPECT_EQ(read(world, "/ckpt/a"), "weights");
  }
}

TEST(SimDisk, UnsyncedBytesAreKeptTornOrLost) {
  std::set<std::string> seen;
  for (const std::uint64_t seed : always(300)) {
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "weights", false));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    world.restart();
    seen.insert(read(world, "/ckpt/a"));
  }
  EXPECT_TRUE(seen.contains("weights"));
  EXPECT_TRUE(seen.contains(""));
  EXPECT_TRUE(seen.contains("wei"));
  EXPECT_TRUE(seen.contains(std::string(7, '\0')));
}

TEST(SimDisk, AnUnsyncedChangeInPlaceLeavesOldNewOrTornBytesAndTheRestAlone) {
  std::set<std::string> seen;
  for (const std::uint64_t seed : always(200)) {
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "..oooo.."));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    auto file = world.disk().change("/ckpt/a");
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write_at(2, as_bytes("nnnn")));
    world.crash();
    world.restart();
    const std::string left = read(world, "/ckpt/a");
    EXPECT_EQ(left.substr(0, 2) + left.substr(6), "....");
    seen.insert(left.substr(2, 4));
  }
  EXPECT_TRUE(seen.contains("oooo") && seen.contains("nnnn") && seen.contains("nnoo"));
}

TEST(SimDisk, EachUnsyncedAppendHasItsOwnFate) {
  bool middle_lost = false;
  for (const std::uint64_t seed : always(300)) {
    SimWorld world(seed);
    make_ckpt(world);
    auto file = *world.disk().create("/ckpt/a");
    for (const char* part : {"aa", "bb", "cc"}) ASSERT_TRUE(file->append(as_bytes(part)));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    world.restart();
    const std::string left = read(world, "/ckpt/a");
    middle_lost = middle_lost || left == std::string("aa\0\0cc", 6);
  }
  EXPECT_TRUE(middle_lost);
}

TEST(SimDisk, ANameIsKeptOrLostUntilItsDirectoryIsSynced) {
  std::set<std::string> seen;
  for (const std::uint64_t seed : always(100)) {
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "weights"));
    world.restart();
    seen.insert(read(world, "/ckpt/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"weights", "not_found"}));
}

TEST(SimDisk, ARenameIsOldOrNewAfterACrashNeverHalf) {
  std::set<std::string> seen;
  for (const std::uint64_t seed : always(200)) {
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "old"));
    ASSERT_TRUE(write(world, "/ckpt/b", "new"));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    ASSERT_TRUE(world.disk().rename("/ckpt/b", "/ckpt/a"));
    EXPECT_EQ(read(world, "/ckpt/a"), "new");
    world.restart();
    seen.insert(read(world, "/ckpt/a") + " " + read(world, "/ckpt/b"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old new", "new not_found"}));
}

TEST(SimDisk, AChainOfRenamesLeavesOneName) {
  for (const std::uint64_t seed : seeds(200)) {
    HOLDFAST_SIM_TRACE(seed);
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "x"));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    ASSERT_TRUE(world.disk().rename("/ckpt/a", "/ckpt/b"));
    ASSERT_TRUE(world.disk().rename("/ckpt/b", "/ckpt/c"));
    world.restart();
    EXPECT_EQ(world.disk().list("/ckpt")->size(), 1U);
  }
}

TEST(SimDisk, ARemovedFileMayComeBackUntilItsDirectoryIsSynced) {
  std::set<std::string> seen;
  for (const std::uint64_t seed : always(100)) {
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "old"));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    ASSERT_TRUE(world.disk().remove("/ckpt/a"));
    EXPECT_FALSE(world.disk().exists("/ckpt/a"));
    world.restart();
    seen.insert(read(world, "/ckpt/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old", "not_found"}));
}

TEST(SimDisk, AFileInADirectoryThatIsNotSyncedMayGoWithIt) {
  std::set<std::string> seen;
  for (const std::uint64_t seed : always(100)) {
    SimWorld world(seed);
    ASSERT_TRUE(world.disk().make_dirs("/ckpt"));
    ASSERT_TRUE(write(world, "/ckpt/a", "x"));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    world.restart();
    seen.insert(read(world, "/ckpt/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"x", "not_found"}));
}

TEST(SimDisk, TruncationOfAnOldFileMayBeLost) {
  std::set<std::string> seen;
  for (const std::uint64_t seed : always(200)) {
    SimWorld world(seed);
    make_ckpt(world);
    ASSERT_TRUE(write(world, "/ckpt/a", "old"));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    ASSERT_TRUE(write(world, "/ckpt/a", "new", false));
    world.restart();
    seen.insert(read(world, "/ckpt/a"));
  }
  EXPECT_TRUE(seen.contains("old"));
  EXPECT_TRUE(seen.contains("new"));
  EXPECT_TRUE(seen.contains(""));
}

TEST(SimDisk, AfterTheCrashPointEveryCallFailsAndNothingChanges) {
  SimWorld world(1);
  make_ckpt(world);
  auto file = *world.disk().create("/ckpt/a");
  world.crash_after(1);
  EXPECT_TRUE(file->append(as_bytes("x")));
  const Status refused = file->append(as_bytes("y"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::Unavailable);
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(world.disk().exists("/ckpt"));
  EXPECT_FALSE(world.disk().create("/ckpt/b"));
  world.restart();
  EXPECT_TRUE(world.disk().exists("/ckpt"));
  EXPECT_FALSE(world.disk().exists("/ckpt/b"));
  EXPECT_FALSE(file->append(as_bytes("z"))) << "a file opened before the crash";
}

TEST(SimDisk, CountsItsCallsForASweep) {
  SimWorld world(1);
  const std::uint64_t before = world.disk_calls();
  make_ckpt(world);
  EXPECT_EQ(world.disk_calls(), before + 2);
}

TEST(SimDisk, AFullDiskWritesWhatFitsAndHasRoomAgainAfterARemoval) {
  SimWorld world(1);
  make_ckpt(world);
  ASSERT_TRUE(write(world, "/ckpt/old", "12345"));
  world.disk_policy().bytes_max = 8;
  const Status full = write(world, "/ckpt/new", "12345");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Code::Unavailable);
  EXPECT_EQ(read(world, "/ckpt/new"), "123");
  ASSERT_TRUE(world.disk().remove("/ckpt/old"));
  EXPECT_TRUE(write(world, "/ckpt/new", "12345"));
}

TEST(SimDisk, SpaceOfAnOpenRemovedFileIsFreeOnceItIsClosed) {
  SimWorld world(1);
  make_ckpt(world);
  {
    auto file = *world.disk().create("/ckpt/a");
    ASSERT_TRUE(file->append(as_bytes("12345")));
    ASSERT_TRUE(world.disk().remove("/ckpt/a"));
    EXPECT_EQ(world.node().disk().bytes_used(), 5U);
  }
  EXPECT_EQ(world.node().disk().bytes_used(), 0U);
}

TEST(SimDisk, AFileLeftOpenOverACrashDoesNotDisturbTheCountOfSpace) {
  SimWorld world(1);
  make_ckpt(world);
  ASSERT_TRUE(write(world, "/ckpt/a", "12345"));
  ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
  auto before = *world.disk().open("/ckpt/a");
  world.restart();
  auto after = *world.disk().open("/ckpt/a");
  before.reset();
  ASSERT_TRUE(world.disk().remove("/ckpt/a"));
  EXPECT_EQ(world.node().disk().bytes_used(), 5U) << "still open";
  after.reset();
  EXPECT_EQ(world.node().disk().bytes_used(), 0U);
}

TEST(SimDisk, FailsByChanceAsThePolicySays) {
  SimWorld world(1);
  make_ckpt(world);
  world.disk_policy().write_error = 0.5;
  int failed = 0;
  for (int i = 0; i < 200; ++i) failed += write(world, "/ckpt/a", "x") ? 0 : 1;
  EXPECT_GT(failed, 50);
  EXPECT_LT(failed, 150);
}

TEST(SimDisk, BytesOfAFailedSyncStayAtRiskAfterALaterOne) {
  bool lost = false;
  for (const std::uint64_t seed : always(100)) {
    SimWorld world(seed);
    make_ckpt(world);
    auto file = *world.disk().create("/ckpt/a");
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    ASSERT_TRUE(file->append(as_bytes("x")));
    world.disk_policy().sync_error = 1;
    ASSERT_FALSE(file->sync());
    world.disk_policy().sync_error = 0;
    ASSERT_TRUE(file->sync());
    world.restart();
    lost = lost || read(world, "/ckpt/a") != "x";
  }
  EXPECT_TRUE(lost);
}

TEST(SimDisk, AnIgnoredSyncSaysOkAndLosesBytes) {
  bool lost = false;
  for (const std::uint64_t seed : always(100)) {
    SimWorld world(seed);
    make_ckpt(world);
    world.disk_policy().sync_ignored = true;
    ASSERT_TRUE(write(world, "/ckpt/a", "x"));
    ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
    world.restart();
    lost = lost || read(world, "/ckpt/a") != "x";
  }
  EXPECT_TRUE(lost);
}

TEST(SimDisk, AFlippedByteStaysFlipped) {
  SimWorld world(1);
  make_ckpt(world);
  ASSERT_TRUE(write(world, "/ckpt/a", "weights"));
  ASSERT_TRUE(world.disk().sync_dir("/ckpt"));
  EXPECT_TRUE(world.flip_byte("/ckpt/a", 2));
  EXPECT_FALSE(world.flip_byte("/ckpt/a", 7));
  const std::string damaged = read(world, "/ckpt/a");
  EXPECT_NE(damaged, "weights");
  world.restart();
  EXPECT_EQ(read(world, "/ckpt/a"), damaged);
}

TEST(SimDisk, ReadingPastTheEndIsCorrupt) {
  SimWorld world(1);
  make_ckpt(world);
  ASSERT_TRUE(write(world, "/ckpt/a", "abc"));
  auto file = *world.disk().open("/ckpt/a");
  EXPECT_EQ(file->size(), 3U);
  Bytes out(2);
  EXPECT_TRUE(file->read_at(1, out));
  const Status past = file->read_at(2, out);
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code(), Code::Corrupt);
}

TEST(SimDisk, RefusesWhatARealDiskRefuses) {
  SimWorld world(1);
  make_ckpt(world);
  ASSERT_TRUE(write(world, "/ckpt/a", "x"));
  EXPECT_FALSE(world.disk().create("/nowhere/a"));
  EXPECT_FALSE(world.disk().open("/ckpt"));
  EXPECT_FALSE(world.disk().remove("/ckpt")) << "not empty";
  EXPECT_FALSE(world.disk().rename("/ckpt/b", "/ckpt/c"));
  EXPECT_FALSE(world.disk().rename("/ckpt", "/ckpt/inner"));
  EXPECT_FALSE(world.disk().make_dirs("/ckpt/a/b"));
  EXPECT_FALSE(world.disk().list("/ckpt/a"));
}

TEST(SimDisk, AtomicWriteIsWholeAcrossACrashBeforeEveryCall) {
  for (const std::uint64_t seed : seeds(100)) {
    HOLDFAST_SIM_TRACE(seed);
    for (std::uint64_t calls = 0; calls <= 6; ++calls) {
      SimWorld world(seed);
      make_ckpt(world);
      ASSERT_TRUE(world::write_file_atomically(world.disk(), "/ckpt/a", as_bytes("old")));
      world.crash_after(calls);
      const bool acknowledged =
          static_cast<bool>(world::write_file_atomically(world.disk(), "/ckpt/a", as_bytes("new")));
      world.restart();
      const std::string left = read(world, "/ckpt/a");
      EXPECT_TRUE(left == "new" || (left == "old" && !acknowledged)) << left << " after " << calls << " calls";
    }
  }
}

}  // namespace
}  // namespace holdfast::sim
