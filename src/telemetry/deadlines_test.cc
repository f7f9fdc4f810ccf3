#include "telemetry/deadlines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::telemetry {
namespace {

using namespace std::chrono_literals;

void train(Deadlines& deadlines, Step steps, Nanos each) {
  for (Step step = 0; step < steps; ++step) deadlines.observe(Phase::Train, step, each);
}

TEST(Deadlines, TheStartBoundHoldsUntilEnoughStepsWereSeen) {
  Deadlines deadlines;
  train(deadlines, 2, 50ms);
  EXPECT_EQ(deadlines.deadline(Phase::Train), 10min);
  EXPECT_EQ(deadlines.hang_policy().step.suspicion, 10min);
  train(deadlines, 3, 50ms);
  EXPECT_EQ(deadlines.deadline(Phase::Train), 1s);
}

TEST(Deadlines, ShortStepsAreFoundOutWithinHalfASecond) {
  Deadlines deadlines;
  train(deadlines, 10, 50ms);
  const HangPolicy policy = deadlines.hang_policy();
  EXPECT_LE(policy.step.suspicion + policy.step.gil, 500ms);
}

TEST(Deadlines, TrainGrowsWithTheMedianAndTheLongest) {
  Deadlines deadlines;
  train(deadlines, 5, 1s);
  EXPECT_EQ(deadlines.deadline(Phase::Train), 12s);
  deadlines.observe(Phase::Train, 5, 10s);
  EXPECT_EQ(deadlines.deadline(Phase::Train), 40s);
  EXPECT_EQ(deadlines.hang_policy().step.suspicion, 20s);
}

TEST(Deadlines, OfSeveralReportsForOneStepTheLongestCounts) {
  Deadlines deadlines;
  for (Step step = 0; step < 4; ++step) {
    deadlines.observe(Phase::Train, step, 1s);
    deadlines.observe(Phase::Train, step, 2s);
    deadlines.observe(Phase::Train, step, 1s);
  }
  EXPECT_EQ(deadlines.median_step(), Nanos(2s));
}

TEST(Deadlines, ALongStepIsForgottenAfterTheWindow) {
  Deadlines deadlines;
  deadlines.observe(Phase::Train, -1, 100s);
  train(deadlines, 64, 1s);
  EXPECT_EQ(deadlines.deadline(Phase::Train), 12s);
}

TEST(Deadlines, NeverAboveTheirMost) {
  Deadlines deadlines;
  train(deadlines, 5, Nanos::max());
  EXPECT_EQ(deadlines.deadline(Phase::Train), 30min);
  EXPECT_EQ(deadlines.deadline(Phase::Between), 2h);
}

TEST(Deadlines, EvaluationHasItsOwnMeasure) {
  Deadlines deadlines;
  train(deadlines, 5, 50ms);
  EXPECT_EQ(deadlines.deadline(Phase::Evaluate), 60s);
  deadlines.observe(Phase::Evaluate, 4, 30s);
  EXPECT_EQ(deadlines.deadline(Phase::Evaluate), 150s);
  EXPECT_EQ(deadlines.deadline(Phase::Between), 60s);
  EXPECT_EQ(deadlines.deadline(Phase::Compile), 30min);
}

TEST(Deadlines, AFirstStepIsMeasuredByFirstSteps) {
  Deadlines deadlines;
  train(deadlines, 5, 50ms);
  EXPECT_EQ(deadlines.hang_policy().first_step.deadline, 10min);
  deadlines.observe_first_step(800ms);
  const HangPolicy policy = deadlines.hang_policy();
  EXPECT_EQ(policy.first_step.deadline, 10s);
  EXPECT_EQ(policy.first_step.suspicion, 1600ms);
  EXPECT_EQ(policy.step.deadline, 1s);
}

TEST(Deadlines, AHandSetOneReplacesWhatIsLearned) {
  DeadlinePolicy policy;
  policy.fixed[static_cast<std::size_t>(Phase::Train)] = 7s;
  Deadlines deadlines(policy);
  EXPECT_EQ(deadlines.deadline(Phase::Train), 7s);
  train(deadlines, 5, 1s);
  EXPECT_EQ(deadlines.deadline(Phase::Train), 7s);
}

TEST(Behaviour18, TheDefaultLadderIsConsistent) { EXPECT_TRUE(check_ladder({})); }

TEST(Behaviour18, AGroupTimeoutThatWouldSpeakFirstIsRefusedInOneLine) {
  DeadlinePolicy policy;
  policy.group_timeout = 120s;
  const Status status = check_ladder(policy);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::BadInput);
  EXPECT_EQ(status.error().message(), "time bounds: the start deadline (600 s) must be below group_timeout (120 s)");
}

TEST(Behaviour18, EveryStepOfTheLadderIsChecked) {
  const auto refused = [](auto change, const char* about) {
    DeadlinePolicy policy;
    change(policy);
    const Status status = check_ladder(policy);
    ASSERT_FALSE(status) << about;
    EXPECT_THAT(status.error().message(), testing::HasSubstr(about));
    EXPECT_THAT(status.error().message(), testing::Not(testing::HasSubstr("\n")));
  };
  refused([](auto& p) { p.suspicion.least = 5s; }, "suspicion");
  refused([](auto& p) { p.gil.least = 2s; }, "gil");
  refused([](auto& p) { p.stop_grace = 3s; }, "stop_grace");
  refused([](auto& p) { p.heartbeat_every = 1s; }, "heartbeat");
  refused([](auto& p) { p.train.most = 500ms; }, "train");
  refused([](auto& p) { p.evaluate.medians = -1; }, "evaluate");
  refused([](auto& p) { p.compile = 4h; }, "compile");
  refused([](auto& p) { p.fixed[static_cast<std::size_t>(Phase::Train)] = 100ms; }, "train");
  refused([](auto& p) { p.fixed[static_cast<std::size_t>(Phase::Evaluate)] = 0s; }, "evaluate");
}

}  // namespace
}  // namespace holdfast::telemetry
