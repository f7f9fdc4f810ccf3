#include "sim/schedule.h"

#include <gtest/gtest.h>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

class ScheduleTest : public testing::Test {
 protected:
  std::function<void()> say(const std::string& what) {
    return [this, what] { said_ += what; };
  }
  std::string run_all() {
    while (schedule_.run_next(schedule_.now() + 1h)) {
    }
    return said_;
  }

  Schedule schedule_;
  std::string said_;
};

TEST_F(ScheduleTest, RunsInOrderOfTimeThenOfCalling) {
  const Nanos start = schedule_.now();
  schedule_.at(start + 2ms, kNobody, say("c"));
  schedule_.at(start + 1ms, kNobody, say("a"));
  schedule_.at(start + 1ms, kNobody, say("b"));
  EXPECT_EQ(run_all(), "abc");
}

TEST_F(ScheduleTest, TimeStandsStillWithinAnEventAndReachesTheLimit) {
  const Nanos start = schedule_.now();
  Nanos seen{};
  schedule_.at(start + 2ms, kNobody, [&] { seen = schedule_.now(); });
  EXPECT_FALSE(schedule_.run_next(start + 1ms));
  EXPECT_EQ(schedule_.now(), start + 1ms);
  EXPECT_TRUE(schedule_.run_next(start + 5ms));
  EXPECT_EQ(seen, start + 2ms);
}

TEST_F(ScheduleTest, ACancelledEventDoesNotRunAndItsPlaceIsUsedAgain) {
  const TimerId old = schedule_.at(schedule_.now(), kNobody, say("old"));
  schedule_.cancel(old);
  schedule_.at(schedule_.now(), kNobody, say("new"));
  schedule_.cancel(old);
  schedule_.cancel(world::kNoTimer);
  EXPECT_EQ(run_all(), "new");
}

TEST_F(ScheduleTest, EventsOfAHeldOwnerWaitAndKeepTheirOrder) {
  const Owner owner = schedule_.add_owner();
  schedule_.at(schedule_.now() + 1ms, owner, say("a"));
  const TimerId cancelled = schedule_.at(schedule_.now() + 2ms, owner, say("-"));
  schedule_.at(schedule_.now() + 3ms, owner, say("b"));
  schedule_.hold(owner);
  EXPECT_EQ(run_all(), "");
  schedule_.cancel(cancelled);
  schedule_.at(schedule_.now(), owner, say("c"));
  schedule_.release(owner);
  EXPECT_EQ(run_all(), "abc");
}

TEST_F(ScheduleTest, NothingOfAGoneOwnerRunsAndItsClosuresAreDestroyed) {
  const Owner owner = schedule_.add_owner();
  const auto held = std::make_shared<int>(0);
  schedule_.at(schedule_.now(), owner, [held, this] { said_ += "gone"; });
  schedule_.silence(owner);
  EXPECT_EQ(run_all(), "");
  EXPECT_EQ(held.use_count(), 2);
  schedule_.drop(owner);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(schedule_.at(schedule_.now(), owner, say("gone")), world::kNoTimer);
}

TEST_F(ScheduleTest, TheHashTellsTwoOrdersApart) {
  Schedule other;
  schedule_.fold(1);
  schedule_.fold(2);
  other.fold(2);
  other.fold(1);
  EXPECT_NE(schedule_.trace_hash(), other.trace_hash());
}

}  // namespace
}  // namespace holdfast::sim
