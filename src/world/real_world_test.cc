#include "world/real_world.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

TEST(RealWorld, HasASteadyClockThatAgreesWithTheSystems) {
  const auto world = make_real_world();
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  const Nanos now = world->clock().steady();
  EXPECT_GE(now, before);
  EXPECT_LE(now, std::chrono::steady_clock::now().time_since_epoch());
}

TEST(RealWorld, HasAWallClockAfterThisWasWritten) {
  EXPECT_GT(make_real_world()->clock().wall(), std::chrono::seconds(1'700'000'000));
}

TEST(RealWorld, DrawsNumbersThatDiffer) {
  const auto world = make_real_world();
  EXPECT_NE(world->random().next(), world->random().next());
}

}  // namespace
}  // namespace holdfast::world
