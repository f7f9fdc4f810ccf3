// What the coordinator goes back to, and how it stops.
#include "run/coordinator_fixture.h"

namespace holdfast::run {
namespace {

TEST_F(CoordinatorTest, AFaultBeforeTheCheckpointIsLoadedDoesNotTakeTheRunBackToItsBeginning) {
  begin(2);
  for (Rank rank : {0u, 1u}) say(worker(rank), Attach{});
  for (Rank rank : {0u, 1u}) ready(rank, 0);  // fresh from the script: no step applied
  take(coordinator_->on_checkpoint(now_, 40, "/ckpt/40"));
  die(worker(1));
  say(worker(1), Attach{});
  ready(0, 0);
  ready(1, kNoStep);
  ASSERT_EQ(ordered<FindCheckpoint>().size(), 2u);
  take(coordinator_->on_checkpoint(now_, 40, "/ckpt/40"));
  EXPECT_EQ(sent<Regroup>().back().second.step, 40);
}

TEST_F(CoordinatorTest, AStepThatOnlyTheDeadHadAppliedTakesNobodyBackToTheDisk) {
  begin(3);
  reach_loop();
  die(worker(2));
  say(worker(2), Attach{});
  ready(0, 8);
  ready(1, 7);
  ready(2, kNoStep);
  ASSERT_EQ(sent<Regroup>().back().second.step, 8);
  die(worker(0));  // before anyone has copied its state
  say(worker(0), Attach{});
  ready(0, kNoStep);
  ready(1, 7);
  ready(2, kNoStep);
  EXPECT_EQ(sent<Regroup>().back().second.step, 7);
  EXPECT_EQ(sent<Regroup>().back().second.checkpoint, "");
}

TEST_F(CoordinatorTest, AGroupThatBreaksWhileItStopsIsToldOnce) {
  begin(2);
  reach_loop();
  coordinator_->stop(kExitTryLater);
  take(coordinator_->on_exit(now_, worker(0), {}, ""));
  say(worker(1), GroupError{.epoch = 1, .text = "connection closed"});
  for (int ticks = 0; ticks < 500; ++ticks) take(coordinator_->tick(now_ += milliseconds(10)));
  EXPECT_LE(coordinator_->faults().size(), 1u);
  EXPECT_FALSE(end());  // the agent's grace bounds the wait
}

TEST_F(CoordinatorTest, TheLastToBeHeardInTheLoopMayFindOthersThroughIt) {
  begin(2);
  for (Rank rank : {0u, 1u}) say(worker(rank), Attach{});
  for (Rank rank : {0u, 1u}) ready(rank, 0);
  take(coordinator_->on_checkpoint(now_, kNoStep, ""));
  restored(0);
  say(worker(0), Finished{.epoch = 1, .step = 1});
  EXPECT_EQ(coordinator_->mode(), Mode::Restoring);
  restored(1);
  EXPECT_EQ(coordinator_->mode(), Mode::Running);
}

TEST_F(CoordinatorTest, AStopAfterTheWorkIsDoneChangesNothing) {
  begin(2);
  reach_loop();
  for (Rank rank : {0u, 1u}) say(worker(rank), Finished{.epoch = 1, .step = 1});
  coordinator_->stop(kExitTryLater);
  for (WorkerId each : {worker(0), worker(1)}) take(coordinator_->on_exit(now_, each, {}, ""));
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitDone);
}

TEST_F(CoordinatorTest, AStopWhileRanksMeetIsNoFailure) {
  begin(3);
  for (Rank rank : {0u, 1u, 2u}) say(worker(rank), Attach{});
  ready(0, 0);
  coordinator_->stop(kExitTryLater);
  const std::vector<WorkerId> all = {worker(1), worker(2), worker(0)};
  for (WorkerId each : all) die(each, SIGTERM);
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitTryLater);
}

TEST_F(CoordinatorTest, NobodyWasLateWhileTheLauncherStoodStill) {
  begin(2);
  reach_loop();
  die(worker(1));
  now_ += seconds(60);
  coordinator_->stood_still(seconds(60));
  take(coordinator_->tick(now_));
  EXPECT_EQ(coordinator_->faults().size(), 1u);
  EXPECT_EQ(coordinator_->mode(), Mode::Recovering);
}

}  // namespace
}  // namespace holdfast::run
