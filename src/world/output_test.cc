#include "world/output.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "world/processes_fixture.h"

namespace holdfast::world {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class OutputTest : public ProcessesTest {
 protected:
  /// Runs it to its end.
  Story run(const SpawnSpec& spec) {
    Story story;
    const auto process = spawn(spec, story.record());
    EXPECT_TRUE(serve([&] { return story.exit.has_value(); }));
    return story;
  }
  TempDir dir_;
};

TEST_F(OutputTest, KeepsTheTwoStreamsApart) {
  const Story story = run(shell("echo out; echo err >&2"));
  EXPECT_EQ(story.out, "out\n");
  EXPECT_EQ(story.err, "err\n");
}

TEST_F(OutputTest, IsDeliveredWholeBeforeTheExit) {
  Story story;
  std::size_t at_exit = 0;
  auto events = story.record();
  events.on_exit = [&](ExitStatus status) { at_exit = story.out.size(), story.exit = status; };
  const auto process = spawn(shell("head -c 1000000 /dev/zero"), std::move(events));
  ASSERT_TRUE(serve([&] { return story.exit.has_value(); }));
  EXPECT_EQ(at_exit, 1'000'000u);
}

TEST_F(OutputTest, IsNotWaitedForWhereAHelperKeepsThePipeOpen) {
  Story story;
  std::optional<pid_t> helper;
  const auto process = spawn(shell("setsid sleep 1000 & echo $!; exit 0"), story.record());
  ASSERT_TRUE(serve([&] { return story.exit.has_value(); }));
  EXPECT_NE(story.out, "");
}

TEST_F(OutputTest, GoesStraightToAFileWithoutACallback) {
  SpawnSpec spec = shell("echo out; echo err >&2");
  spec.out = {.to_callback = false, .file = dir_.path("out")};
  spec.err = {.to_callback = false, .file = dir_.path("err")};
  const Story story = run(spec);
  EXPECT_EQ(story.out + story.err, "");
  EXPECT_EQ(text_of(dir_.path("out")), "out\n");
  EXPECT_EQ(text_of(dir_.path("err")), "err\n");
}

TEST_F(OutputTest, IsAppendedToAFileBesideTheCallback) {
  SpawnSpec spec = shell("echo out");
  spec.out.file = dir_.path("out");
  EXPECT_EQ(run(spec).out, "out\n");
  EXPECT_EQ(run(spec).out, "out\n");
  EXPECT_TRUE(serve([&] { return text_of(dir_.path("out")) == "out\nout\n"; }));
}

TEST_F(OutputTest, ToAFileThatCannotBeMadeFailsTheSpawn) {
  SpawnSpec spec = shell("echo out");
  spec.out.file = dir_.path("no/out");
  const auto process = processes_.spawn(spec, {});
  ASSERT_FALSE(process);
  EXPECT_NE(process.error().message().find(dir_.path("no/out")), std::string::npos);
}

}  // namespace
}  // namespace holdfast::world
