#include "world/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <vector>

namespace holdfast::world {
namespace {

TEST(ParallelFor, RunsEachIndexOnce) {
  for (const unsigned threads : {0U, 1U, 3U, 16U}) {
    std::vector<std::atomic<int>> runs(100);
    parallel_for(threads, runs.size(), [&](std::size_t i) { ++runs[i]; });
    for (const auto& each : runs) EXPECT_EQ(each, 1);
  }
}

TEST(ParallelFor, HasNothingToDoForNothing) {
  parallel_for(4, 0, [](std::size_t) { FAIL(); });
}

TEST(ParallelTry, BeginsNothingAfterAnErrorAndReturnsIt) {
  std::size_t runs = 0;
  const Status done = parallel_try(1, 10, [&](std::size_t i) {
    ++runs;
    return i == 3 ? Status(Error(Code::BadInput, "third")) : Status(Ok{});
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "third");
  EXPECT_EQ(runs, 4U);
  EXPECT_TRUE(parallel_try(4, 10, [](std::size_t) { return Status(Ok{}); }));
}

TEST(GivingWay, IsDoneByThreadsThatComeLastAndLeavesTheCallersAlone) {
  std::vector<int> policies(2);
  giving_way([&] { parallel_for(2, policies.size(), [&](std::size_t i) { policies[i] = ::sched_getscheduler(0); }); });
  EXPECT_EQ(policies, std::vector<int>({SCHED_IDLE, SCHED_IDLE}));
  EXPECT_FALSE(gives_way());
}

TEST(ParallelFor, UsesAtLeastOneCpu) { EXPECT_GE(usable_cpus(), 1U); }

}  // namespace
}  // namespace holdfast::world
