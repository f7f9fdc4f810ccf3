#include "store/background.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace holdfast::store {
namespace {

TEST(InBackground, OnlyTheWritingOfALargeShardGivesWay) {
  for (const bool large : {false, true}) {
    const Bytes bytes(large ? kGivesWayFrom : kGivesWayFrom - 1);
    const TensorData tensor{"w", "U8", {bytes.size()}, bytes};
    const int policy = in_background(std::span(&tensor, 1), [] { return ::sched_getscheduler(0); });
    EXPECT_EQ(policy == SCHED_IDLE, large);
  }
  EXPECT_NE(::sched_getscheduler(0), SCHED_IDLE);
}

}  // namespace
}  // namespace holdfast::store
