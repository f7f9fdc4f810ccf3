#include "world/disk.h"

#include <gtest/gtest.h>

#include "world/faulty_disk.h"
#include "world/real_disk.h"
#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

std::string text_of(Disk& disk, const std::string& path) {
  const auto bytes = read_file(disk, path, 1000);
  return bytes ? std::string(as_text(*bytes)) : bytes.error().message();
}

TEST(WriteFileAtomically, ReplacesTheWholeFileAndLeavesNothingBeside) {
  const TempDir dir;
  RealDisk disk;
  ASSERT_TRUE(write_file_atomically(disk, dir.path("a"), as_bytes("a longer first text")));
  ASSERT_TRUE(write_file_atomically(disk, dir.path("a"), as_bytes("second")));
  EXPECT_EQ(text_of(disk, dir.path("a")), "second");
  EXPECT_EQ(disk.list(dir.path(""))->size(), 1u);
}

TEST(WriteFileAtomically, KeepsTheOldFileWhereTheDiskIsFull) {
  const TempDir dir;
  RealDisk real;
  FaultyDisk disk(real);
  ASSERT_TRUE(write_file_atomically(disk, dir.path("a"), as_bytes("first")));
  disk.arm_full(1);
  const Status full = write_file_atomically(disk, dir.path("a"), as_bytes("second"));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Code::Unavailable);
  EXPECT_EQ(text_of(disk, dir.path("a")), "first");
  EXPECT_EQ(disk.list(dir.path(""))->size(), 1u);
}

TEST(ReadFile, RefusesAFileOverTheLimit) {
  const TempDir dir;
  RealDisk disk;
  ASSERT_TRUE(write_file_atomically(disk, dir.path("a"), Bytes(11)));
  ASSERT_TRUE(read_file(disk, dir.path("a"), 11));
  const auto bytes = read_file(disk, dir.path("a"), 10);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), Code::BadInput);
}

TEST(ReadFile, NamesTheFileThatIsNotThere) {
  RealDisk disk;
  const auto bytes = read_file(disk, "/nowhere/a", 10);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message(), "/nowhere/a: No such file or directory");
}

}  // namespace
}  // namespace holdfast::world
