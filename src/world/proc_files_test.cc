#include "world/proc_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "world/real_fixture.h"

namespace holdfast::world {
namespace {

TEST(ProcStat, IsReadAroundANameThatLooksLikeFields) {
  const auto stat = parse_proc_stat("42 (a) S 9 (b)) R 7 8 6 0 -1 4 1 2 3 4 150 50 0 0 20 0 1");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->group, 8);
  EXPECT_EQ(stat->session, 6);
  EXPECT_EQ(stat->cpu, Nanos(std::chrono::seconds(200)) / ::sysconf(_SC_CLK_TCK));
}

TEST(ProcStat, RefusesOtherTexts) {
  for (const char* text : {"", "42 (sh", "42 (sh) S 1 2", "42 (sh) S x y z"})
    EXPECT_FALSE(parse_proc_stat(text)) << text;
}

TEST(ProcStat, KnowsThisProcess) {
  const auto stat = read_proc_stat(::getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_EQ(stat->session, ::getsid(0));
  EXPECT_EQ(read_proc_stat(-1).error().code(), Code::NotFound);
}

TEST(ChildrenOfOurs, ListsADirectChildAndNoOther) {
  const Bystander child(/*own_session=*/false);
  const auto children = children_of_ours();
  EXPECT_NE(std::find(children.begin(), children.end(), child.pid()), children.end());
  EXPECT_EQ(std::find(children.begin(), children.end(), ::getpid()), children.end());
}

TEST(StartedWith, ReadsTheEnvironmentOfTheStartAlone) {
  ::setenv("HOLDFAST_TEST_LATER", "1", 1);
  EXPECT_EQ(started_with(::getpid(), "HOLDFAST_TEST_LATER"), std::nullopt);
  EXPECT_EQ(started_with(::getpid(), "PATH"), std::string(::getenv("PATH")));
  EXPECT_EQ(started_with(::getpid(), "PAT"), std::nullopt);
}

}  // namespace
}  // namespace holdfast::world
