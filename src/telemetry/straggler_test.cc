#include "telemetry/straggler.h"

#include <gtest/gtest.h>

namespace holdfast::telemetry {
namespace {

using namespace std::chrono_literals;

/// `factor(rank, step)` times 100 ms each.
template <typename Factor>
std::vector<StepTiming> timings(Rank ranks, Step steps, Factor factor) {
  std::vector<StepTiming> made;
  for (Step step = 0; step < steps; ++step) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      made.push_back({rank, step, Nanos(static_cast<std::int64_t>(1e8 * factor(rank, step)))});
    }
  }
  return made;
}

TEST(Straggler, EqualRanksConvictNobody) {
  EXPECT_TRUE(slow_ranks(timings(4, 20, [](Rank, Step) { return 1.0; }), {}).empty());
}

TEST(Straggler, NamesTheSlowRankWithItsSlowdown) {
  const auto slow = slow_ranks(timings(4, 8, [](Rank rank, Step) { return rank == 2 ? 3.0 : 1.0; }), {});
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].rank, 2u);
  EXPECT_DOUBLE_EQ(slow[0].slowdown, 3.0);
  EXPECT_EQ(slow[0].votes, 8u);
}

TEST(Straggler, TheSlowestComesFirst) {
  const auto slow =
      slow_ranks(timings(6, 8, [](Rank rank, Step) { return rank == 1   ? 2.0
                                                            : rank == 4 ? 5.0
                                                                        : 1.0; }), {});
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0].rank, 4u);
  EXPECT_EQ(slow[1].rank, 1u);
}

TEST(Straggler, HalfOfTheRanksSlowAreStillFound) {
  EXPECT_EQ(slow_ranks(timings(4, 8, [](Rank rank, Step) { return rank < 2 ? 3.0 : 1.0; }), {}).size(), 2u);
}

TEST(Straggler, ASingleVerySlowStepConvictsNobody) {
  EXPECT_TRUE(
      slow_ranks(timings(4, 8, [](Rank rank, Step step) { return rank == 2 && step == 5 ? 500.0 : 1.0; }), {}).empty());
}

TEST(Straggler, SixOfEightConvictAndFiveDoNot) {
  const auto slow_for = [](Step steps) {
    return slow_ranks(timings(4, 8, [&](Rank rank, Step step) { return rank == 0 && step < steps ? 2.5 : 1.0; }), {});
  };
  EXPECT_TRUE(slow_for(5).empty());
  EXPECT_EQ(slow_for(6).size(), 1u);
}

TEST(Straggler, OnlyTheNewestStepsCount) {
  EXPECT_TRUE(
      slow_ranks(timings(4, 30, [](Rank rank, Step step) { return rank == 3 && step < 24 ? 9.0 : 1.0; }), {}).empty());
}

TEST(Straggler, AbstainsBelowThreeRanksAndWithoutData) {
  EXPECT_TRUE(slow_ranks({}, {}).empty());
  EXPECT_TRUE(slow_ranks(timings(2, 8, [](Rank rank, Step) { return rank == 0 ? 9.0 : 1.0; }), {}).empty());
}

TEST(Straggler, ToleratesMissingRanksAndZeroTimes) {
  auto some = timings(4, 8, [](Rank rank, Step) { return rank == 2 ? 3.0 : 1.0; });
  std::erase_if(some, [](const StepTiming& t) { return t.rank == 0 || (t.rank == 1 && t.step == 3); });
  EXPECT_EQ(slow_ranks(some, {}).size(), 1u);  // step 3 has two ranks and does not vote: seven left
  EXPECT_TRUE(slow_ranks(timings(4, 8, [](Rank rank, Step) { return rank == 2 ? 3.0 : 0.0; }), {}).empty());
}

}  // namespace
}  // namespace holdfast::telemetry
