#include "sim/random.h"

#include <gtest/gtest.h>

#include "sim/policy.h"

namespace holdfast::sim {
namespace {

TEST(SimRandom, ReplaysFromItsSeed) {
  SimRandom first(1);
  SimRandom again(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(first.next(), again.next());
}

TEST(SimRandom, AFaultSwitchedOffShiftsNoOtherDraw) {
  SimRandom with(1);
  SimRandom without(1);
  EXPECT_FALSE(with.chance(0));
  EXPECT_EQ(with.next(), without.next());
}

TEST(SimRandom, ChanceKeepsItsProbability) {
  SimRandom random(1);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) hits += random.chance(0.3) ? 1 : 0;
  EXPECT_GT(hits, 2800);
  EXPECT_LT(hits, 3200);
}

TEST(SimRandom, DelaysStayWithinTheirEnds) {
  SimRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    const Nanos drawn = random.draw({2us, 3us});
    EXPECT_GE(drawn, 2us);
    EXPECT_LE(drawn, 3us);
  }
  EXPECT_EQ(random.draw({5us, 5us}), 5us);
}

TEST(SimRandom, StreamsSplitOffDiffer) {
  const SimRandom random(1);
  EXPECT_NE(random.split(1).next(), random.split(2).next());
}

TEST(DrawPolicy, EachFaultIsOffOnSomeDaysAndOnOnOthers) {
  int duplicating = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimRandom random(seed);
    duplicating += draw_policy(random).net.duplicate > 0 ? 1 : 0;
  }
  EXPECT_GT(duplicating, 20);
  EXPECT_LT(duplicating, 80);
}

}  // namespace
}  // namespace holdfast::sim
