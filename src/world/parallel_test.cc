#include "world/parallel.h"

#include <gtest/gtest.h>

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

TEST(ParallelFor, UsesAtLeastOneCpu) { EXPECT_GE(usable_cpus(), 1U); }

}  // namespace
}  // namespace holdfast::world
