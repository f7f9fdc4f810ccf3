#include "world/real_disk.h"

#include <gtest/gtest.h>

#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

class RealDiskTest : public testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) {
    auto file = disk_.create(dir_.path(name));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append(as_bytes(text)));
    ASSERT_TRUE((*file)->sync());
  }
  TempDir dir_;
  RealDisk disk_;
};

TEST_F(RealDiskTest, ReadsAnyPartOfWhatWasAppended) {
  auto file = disk_.create(dir_.path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->append(as_bytes("one ")));
  ASSERT_TRUE((*file)->append(as_bytes("two")));
  const auto reading = disk_.open(dir_.path("a"));
  ASSERT_TRUE(reading);
  EXPECT_EQ((*reading)->size(), 7u);
  Bytes part(3);
  ASSERT_TRUE((*reading)->read_at(4, part));
  EXPECT_EQ(as_text(part), "two");
}

TEST_F(RealDiskTest, CallsAFileThatEndsTooSoonCorrupt) {
  write("a", "1234567");
  const auto reading = disk_.open(dir_.path("a"));
  Bytes part(3);
  for (const std::uint64_t offset : {std::uint64_t{5}, std::uint64_t{100}, ~std::uint64_t{0}}) {
    const auto status = (*reading)->read_at(offset, part);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::Corrupt);
    EXPECT_NE(status.error().message().find(dir_.path("a")), std::string::npos);
  }
}

TEST_F(RealDiskTest, CallsAFullDiskUnavailableAndNamesThePath) {
  auto file = disk_.create("/dev/full");
  ASSERT_TRUE(file);
  const auto status = (*file)->append(as_bytes("x"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::Unavailable);
  EXPECT_EQ(status.error().message(), "/dev/full: No space left on device");
}

TEST_F(RealDiskTest, ChangesAFileInPlaceAndAtItsEnd) {
  write("a", "a long text");
  const auto file = disk_.change(dir_.path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->append(as_bytes("!")));
  ASSERT_TRUE((*file)->write_at(2, as_bytes("neat")));
  ASSERT_TRUE((*file)->sync());
  EXPECT_EQ(as_text(*read_file(disk_, dir_.path("a"), 100)), "a neat text!");
  EXPECT_EQ(disk_.change(dir_.path("none")).error().code(), Code::NotFound);
}

TEST_F(RealDiskTest, TruncatesWhatItCreatesAgain) {
  write("a", "a long text");
  write("a", "b");
  EXPECT_EQ((*disk_.open(dir_.path("a")))->size(), 1u);
}

TEST_F(RealDiskTest, RenamesOverAnExistingFile) {
  write("a", "new");
  write("b", "older");
  ASSERT_TRUE(disk_.rename(dir_.path("a"), dir_.path("b")));
  EXPECT_FALSE(disk_.exists(dir_.path("a")));
  EXPECT_EQ((*disk_.open(dir_.path("b")))->size(), 3u);
}

TEST_F(RealDiskTest, ListsNamesSortedWithoutTheDots) {
  write("b", "");
  write("a", "");
  ASSERT_TRUE(disk_.make_dirs(dir_.path("c")));
  const auto names = disk_.list(dir_.path(""));
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(RealDiskTest, MakesParentsAndIsFineWhereTheyExist) {
  ASSERT_TRUE(disk_.make_dirs(dir_.path("x/y/z")));
  ASSERT_TRUE(disk_.make_dirs(dir_.path("x/y/z")));
  EXPECT_TRUE(disk_.exists(dir_.path("x/y/z")));
  ASSERT_TRUE(disk_.sync_dir(dir_.path("x/y")));
}

TEST_F(RealDiskTest, RemovesFilesAndEmptyDirectoriesOnly) {
  ASSERT_TRUE(disk_.make_dirs(dir_.path("x")));
  write("x/a", "1");
  EXPECT_FALSE(disk_.remove(dir_.path("x")));
  EXPECT_TRUE(disk_.remove(dir_.path("x/a")));
  EXPECT_TRUE(disk_.remove(dir_.path("x")));
  const auto again = disk_.remove(dir_.path("x"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::NotFound);
}

TEST_F(RealDiskTest, SaysNotFoundForWhatIsNotThere) {
  EXPECT_EQ(disk_.open(dir_.path("a")).error().code(), Code::NotFound);
  EXPECT_EQ(disk_.create(dir_.path("x/a")).error().code(), Code::NotFound);
  EXPECT_EQ(disk_.rename(dir_.path("a"), dir_.path("b")).error().code(), Code::NotFound);
  EXPECT_EQ(disk_.list(dir_.path("x")).error().code(), Code::NotFound);
  EXPECT_EQ(disk_.sync_dir(dir_.path("x")).error().code(), Code::NotFound);
}

TEST_F(RealDiskTest, RefusesToReadADirectory) { EXPECT_EQ(disk_.open(dir_.path("")).error().code(), Code::Internal); }

}  // namespace
}  // namespace holdfast::world
