#include "telemetry/recovery.h"

#include <gtest/gtest.h>

namespace holdfast::telemetry {
namespace {

using namespace std::chrono_literals;

TEST(RecoveryTimes, PhasesAddUpToTheWholeRecovery) {
  const auto times = recovery_times({10s, 11s, 13s, 16s, 20s, 25s});
  EXPECT_EQ(times.seen, 11s);
  EXPECT_EQ(times.detect, 1s);
  EXPECT_EQ(times.fence, 2s);
  EXPECT_EQ(times.regroup, 3s);
  EXPECT_EQ(times.restore, 4s);
  EXPECT_EQ(times.first_step, 5s);
  EXPECT_EQ(times.total(), 15s);
}

TEST(RecoveryTimes, AMissingMomentTakesNoTime) {
  const auto times = recovery_times({10s, 11s, 0s, 0s, 0s, 15s});
  EXPECT_EQ(times.fence, 0s);
  EXPECT_EQ(times.restore, 0s);
  EXPECT_EQ(times.first_step, 4s);
  EXPECT_EQ(times.total(), 5s);
}

TEST(RecoveryTimes, MomentsOutOfOrderNeverGiveNegativeTimes) {
  const auto times = recovery_times({10s, 9s, 12s, 11s, 14s, 13s});
  EXPECT_EQ(times.detect, 0s);
  EXPECT_EQ(times.fence, 2s);
  EXPECT_EQ(times.regroup, 0s);
  EXPECT_EQ(times.restore, 2s);
  EXPECT_EQ(times.first_step, 0s);
}

}  // namespace
}  // namespace holdfast::telemetry
