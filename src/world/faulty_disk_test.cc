#include "world/faulty_disk.h"

#include <gtest/gtest.h>

#include <csignal>

#include "world/real_disk.h"
#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

class FaultyDiskTest : public testing::Test {
 protected:
  Status write(const std::string& name) {
    auto file = disk_.create(dir_.path(name));
    if (!file) return std::move(file).error();
    return (*file)->append(as_bytes("0123456789"));
  }
  TempDir dir_;
  RealDisk real_;
  FaultyDisk disk_{real_};
};

TEST_F(FaultyDiskTest, PassesEverythingOnWhileUnarmed) {
  EXPECT_TRUE(write("a"));
  EXPECT_TRUE(disk_.rename(dir_.path("a"), dir_.path("b")));
  EXPECT_EQ((*disk_.open(dir_.path("b")))->size(), 10u);
}

TEST_F(FaultyDiskTest, IsFullForAsManyFilesAsItWasArmedFor) {
  disk_.arm_full(2);
  for (const char* name : {"a", "b"}) {
    const Status full = write(name);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code(), Code::Unavailable);
    EXPECT_EQ(full.error().message(), dir_.path(name) + ": No space left on device");
  }
  EXPECT_TRUE(write("c"));
}

TEST_F(FaultyDiskTest, ANewFileIsWrittenAsTheDiskDoesUnlessItIsArmed) {
  const Pieces pieces{
      .head = 4096, .piece = 8U << 20U, .total = 6U << 20U};  // the real disk writes such past its cache
  const Bytes content(pieces.total, std::byte{5});
  for (const bool armed : {false, true, false}) {
    if (armed) disk_.arm_full(1);
    const std::string path = dir_.path(armed ? "armed" : "unarmed");
    auto file = disk_.begin(path, ".aside", pieces);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(static_cast<bool>((*file)->write(0, content)), !armed);
    if (!armed) {
      EXPECT_TRUE((*file)->commit());
    }
    file->reset();
    EXPECT_EQ(real_.exists(path), !armed);
    EXPECT_FALSE(real_.exists(path + ".aside"));
  }
}

TEST_F(FaultyDiskTest, FilesCreatedBeforeItWasArmedAreSpared) {
  auto file = disk_.create(dir_.path("a"));
  disk_.arm_full(1);
  EXPECT_TRUE((*file)->append(as_bytes("x")));
}

TEST_F(FaultyDiskTest, ACrashLeavesHalfOfTheBytesAndTheProcessDead) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    disk_.arm_crash();
    (void)write("a");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  EXPECT_EQ((*real_.open(dir_.path("a")))->size(), 5u);
}

}  // namespace
}  // namespace holdfast::world
