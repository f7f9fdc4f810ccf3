#include "run/coordinator_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace holdfast::run {
namespace {

TEST_F(CoordinatorTest, AllRanksMeetAndRun) {
  begin(2);
  reach_loop();
  EXPECT_EQ(coordinator_->mode(), Mode::Running);
  const auto regroups = sent<Regroup>();
  ASSERT_EQ(regroups.size(), 2u);
  EXPECT_EQ(regroups[0].second.step, 0);
  EXPECT_EQ(regroups[0].second.epoch, 1u);
}

TEST_F(CoordinatorTest, EpochsBeginAboveWhatWasUsedBefore) {
  coordinator_.emplace(CoordinatorPolicy{.world_size = 1}, RunFacts{});
  take(coordinator_->start(now_, 41));
  EXPECT_EQ(coordinator_->epoch(), 42u);
}

TEST_F(CoordinatorTest, Behaviour7AReplacementTakesTheDeadRanksNumberAndSurvivorsKeepTheirs) {
  begin(3);
  reach_loop();
  const WorkerId survivor0 = worker(0);
  const WorkerId survivor2 = worker(2);
  die(worker(1));
  EXPECT_EQ(worker(0), survivor0);
  EXPECT_EQ(worker(2), survivor2);
  const auto promoted = ordered<PromoteSpare>();
  ASSERT_EQ(promoted.size(), 1u);
  EXPECT_EQ(promoted[0].rank, 1u);
  EXPECT_EQ(worker(1), promoted[0].worker);
}

TEST_F(CoordinatorTest, Behaviour8RankZeroIsReplacedLikeAnyOther) {
  begin(2);
  reach_loop();
  die(worker(0));
  say(worker(0), Attach{});
  ready(1, 1);
  ready(0, kNoStep);
  const auto regroups = sent<Regroup>();
  EXPECT_EQ(regroups.back().second.epoch, 2u);
  EXPECT_THAT(regroups.back().second.copies, testing::ElementsAre(std::pair<Rank, Rank>(1, 0)));
  restored(0);
  restored(1);
  EXPECT_EQ(coordinator_->mode(), Mode::Running);
}

TEST_F(CoordinatorTest, Behaviour17SurvivorsAreToldAtOnceThatTheirGroupIsBroken) {
  begin(4);
  reach_loop();
  die(worker(2));
  const auto aborts = sent<Abort>();
  EXPECT_EQ(aborts.size(), 3u);
  EXPECT_EQ(aborts[0].second.epoch, 1u);
}

TEST_F(CoordinatorTest, LaggardsCopyTheFurthestRank) {
  begin(4);
  reach_loop();
  die(worker(3));
  say(worker(3), Attach{});
  ready(0, 5);
  ready(1, 6);
  ready(2, 6);
  ready(3, kNoStep);
  const Regroup regroup = sent<Regroup>().back().second;
  EXPECT_EQ(regroup.step, 6);
  EXPECT_THAT(regroup.copies, testing::ElementsAre(std::pair<Rank, Rank>(1, 0), std::pair<Rank, Rank>(2, 3)));
}

TEST_F(CoordinatorTest, ARankThatHoldsNothingUsableSendsAllToTheDisk) {
  begin(2);
  reach_loop();
  die(worker(1));
  say(worker(1), Attach{});
  ready(0, kNoStep);
  ready(1, kNoStep);
  EXPECT_EQ(ordered<FindCheckpoint>().size(), 2u);
  take(coordinator_->on_checkpoint(now_, 40, "/ckpt/40"));
  const Regroup regroup = sent<Regroup>().back().second;
  EXPECT_EQ(regroup.step, 40);
  EXPECT_EQ(regroup.checkpoint, "/ckpt/40");
  EXPECT_TRUE(regroup.copies.empty());
}

TEST_F(CoordinatorTest, AHungRankIsKilledBeforeItsPlaceIsTaken) {
  begin(2);
  reach_loop();
  const WorkerId hung = worker(1);
  take(coordinator_->condemn(now_, FaultKind::Hung, {1}, "did not arrive", "stack"));
  ASSERT_EQ(ordered<EndWorker>().size(), 1u);
  EXPECT_EQ(ordered<EndWorker>()[0].worker, hung);
  EXPECT_TRUE(ordered<EndWorker>()[0].kill);
  say(worker(1), Attach{});
  ready(0, 1);
  ready(1, kNoStep);
  EXPECT_EQ(coordinator_->mode(), Mode::Recovering);  // the hung one still lives
  die(hung);
  EXPECT_EQ(coordinator_->mode(), Mode::Restoring);
}

TEST_F(CoordinatorTest, Behaviour12OurOwnKillIsNeverTheRootCause) {
  begin(2);
  reach_loop();
  const WorkerId hung = worker(1);
  take(coordinator_->condemn(now_, FaultKind::Hung, {1}, "did not arrive", ""));
  die(hung, SIGKILL);
  ASSERT_EQ(coordinator_->faults().size(), 1u);
  EXPECT_EQ(coordinator_->faults()[0].kind, FaultKind::Hung);
}

TEST_F(CoordinatorTest, Behaviour24AStoppedProcessGetsSigkillAtOnce) {
  begin(2);
  take(coordinator_->condemn(now_, FaultKind::Stopped, {1}, "stopped for 0.2 s", ""));
  const auto ends = ordered<EndWorker>();
  ASSERT_EQ(ends.size(), 2u);  // a plain script: all ranks start again
  EXPECT_FALSE(ends[0].kill);  // the healthy one may clean up
  EXPECT_TRUE(ends[1].kill);
}

TEST_F(CoordinatorTest, AKillDuringRecoveryOpensTheNextEpoch) {
  begin(3);
  reach_loop();
  die(worker(2));
  say(worker(2), Attach{});
  ready(0, 1);
  ready(1, 1);
  ready(2, kNoStep);
  ASSERT_EQ(coordinator_->mode(), Mode::Restoring);
  die(worker(1));
  EXPECT_EQ(coordinator_->epoch(), 3u);
  EXPECT_EQ(sent<Abort>().back().second.epoch, 2u);
  say(worker(1), Attach{});
  ready(0, 1);
  ready(2, kNoStep);
  ready(1, kNoStep);
  const Regroup regroup = sent<Regroup>().back().second;
  EXPECT_EQ(regroup.epoch, 3u);
  EXPECT_EQ(regroup.step, 1);
  EXPECT_EQ(regroup.copies.size(), 2u);
}

TEST_F(CoordinatorTest, Behaviour6AReportFromAnOlderEpochDoesNotCount) {
  begin(2);
  reach_loop();
  die(worker(1));
  say(worker(1), Attach{});
  ready(0, 1);
  ready(1, kNoStep);
  say(worker(0), Restored{.epoch = 1, .step = 1});
  say(worker(1), Restored{.epoch = 1, .step = 1});
  EXPECT_EQ(coordinator_->mode(), Mode::Restoring);
}

TEST_F(CoordinatorTest, AMessageThatComesTwiceIsActedOnOnce) {
  begin(2);
  reach_loop();
  const WorkerId survivor = worker(0);
  die(worker(1));
  say(worker(1), Attach{});
  say(worker(1), Attach{});
  const Ready report{.epoch = 1, .applied = 1, .round = 100};
  say(survivor, report);
  ready(1, kNoStep);
  ASSERT_EQ(coordinator_->mode(), Mode::Restoring);
  say(survivor, report);
  EXPECT_EQ(coordinator_->mode(), Mode::Restoring);
  EXPECT_EQ(coordinator_->faults().size(), 1u);
}

TEST_F(CoordinatorTest, AFailedCollectiveWaitsForTheFaultThatExplainsIt) {
  begin(2);
  reach_loop();
  say(worker(0), GroupError{.epoch = 1, .text = "connection closed"});
  EXPECT_TRUE(coordinator_->faults().empty());
  now_ += milliseconds(5);
  die(worker(1));
  now_ += seconds(2);
  take(coordinator_->tick(now_));
  ASSERT_EQ(coordinator_->faults().size(), 1u);
  EXPECT_EQ(coordinator_->faults()[0].kind, FaultKind::Killed);
}

TEST_F(CoordinatorTest, AFailedCollectiveWithoutACulpritRegroupsTheSameProcesses) {
  begin(2);
  reach_loop();
  const WorkerId first = worker(0);
  say(worker(0), GroupError{.epoch = 1, .text = "connection reset"});
  now_ += seconds(2);
  take(coordinator_->tick(now_));
  ASSERT_EQ(coordinator_->faults().size(), 1u);
  EXPECT_EQ(coordinator_->faults()[0].kind, FaultKind::GroupError);
  EXPECT_EQ(worker(0), first);
  EXPECT_EQ(coordinator_->epoch(), 2u);
}

TEST_F(CoordinatorTest, Behaviour23NoProgressStopsTheRunWithItsOwnCode) {
  begin(2);
  reach_loop();
  for (int cycle = 0; cycle < 4 && !end(); ++cycle) {
    die(worker(1));
    say(worker(1), Attach{});
    ready(0, 1);
    ready(1, kNoStep);
    restored(0);
    restored(1);
  }
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitDoNotRequeue);
  EXPECT_NE(end()->why.find("without a new completed step"), std::string::npos);
}

TEST_F(CoordinatorTest, Behaviour23AStepDoneBetweenFaultsIsProgress) {
  begin(2);
  reach_loop();
  for (Step step = 1; step < 20; ++step) {
    die(worker(1));
    say(worker(1), Attach{});
    ready(0, step);
    ready(1, kNoStep);
    restored(0);
    restored(1);
    step_done(step);
  }
  EXPECT_FALSE(end());
}

TEST_F(CoordinatorTest, AReplacementThatDiesAgainAndAgainIsNotReplacedForEver) {
  begin(2);
  reach_loop();
  for (int deaths = 0; deaths < 10 && !end(); ++deaths) die(worker(1), SIGSEGV);
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitDoNotRequeue);
}

TEST_F(CoordinatorTest, TheSameErrorOfTheScriptTwiceEndsTheRun) {
  begin(2);
  reach_loop();
  const world::ExitStatus failed{.code = 1, .signal = 0};
  take(coordinator_->on_exit(now_, worker(1), failed, "ValueError: no"));
  EXPECT_EQ(coordinator_->faults().back().kind, FaultKind::UserError);
  say(worker(1), Attach{});
  ready(0, 1);
  ready(1, kNoStep);
  restored(0);
  restored(1);
  EXPECT_FALSE(end());
  take(coordinator_->on_exit(now_, worker(1), failed, "ValueError: no"));
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitFailed);
}

TEST_F(CoordinatorTest, Behaviour11APlainScriptsCrashEndsTheOthersAtOnce) {
  begin(3);
  die(worker(1), SIGSEGV);
  EXPECT_EQ(ordered<EndWorker>().size(), 2u);
  EXPECT_EQ(coordinator_->mode(), Mode::Restarting);
  EXPECT_EQ(coordinator_->faults()[0].kind, FaultKind::Crashed);
}

TEST_F(CoordinatorTest, Behaviour5RestartsAreCountedOnceForAllRanks) {
  begin(3, {.max_restarts = 1});
  const WorkerId first = worker(0);
  const WorkerId last = worker(2);
  die(worker(1), SIGSEGV);
  die(first, SIGTERM);
  die(last, SIGABRT);  // fell over the dead one: not a failure of its own
  EXPECT_EQ(coordinator_->restarts(), 1);
  EXPECT_EQ(coordinator_->faults().size(), 1u);
  EXPECT_EQ(coordinator_->mode(), Mode::Starting);
  die(worker(0), SIGSEGV);
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitFailed);
}

TEST_F(CoordinatorTest, Behaviour2AProcessThatSigkillDoesNotEndStopsTheRunInBoundedTime) {
  begin(2);
  reach_loop();
  take(coordinator_->condemn(now_, FaultKind::Hung, {1}, "", ""));
  now_ += seconds(6);
  take(coordinator_->tick(now_));
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitTryLater);
  EXPECT_EQ(coordinator_->faults().back().kind, FaultKind::Unkillable);
}

TEST_F(CoordinatorTest, ASurvivorThatDoesNotComeBackIsCondemned) {
  begin(3);
  reach_loop();
  die(worker(2));
  say(worker(2), Attach{});
  ready(0, 1);
  ready(2, kNoStep);
  now_ += seconds(31);
  take(coordinator_->tick(now_));
  EXPECT_EQ(coordinator_->faults().back().kind, FaultKind::Hung);
  EXPECT_THAT(coordinator_->faults().back().culprits, testing::ElementsAre(1u));
}

TEST_F(CoordinatorTest, WhereNobodyHasComeNobodyIsToBlame) {
  begin(2);
  say(worker(0), Attach{});
  say(worker(1), Attach{});
  now_ += seconds(100'000);
  take(coordinator_->tick(now_));
  EXPECT_TRUE(coordinator_->faults().empty());
}

TEST_F(CoordinatorTest, AFaultOutsideTheLoopStartsAllAgain) {
  begin(2);
  say(worker(0), Attach{});
  say(worker(1), Attach{});
  const WorkerId survivor = worker(0);
  die(worker(1));
  EXPECT_EQ(coordinator_->mode(), Mode::Restarting);
  die(survivor);
  EXPECT_EQ(coordinator_->mode(), Mode::Starting);
  EXPECT_EQ(coordinator_->epoch(), 2u);
}

TEST_F(CoordinatorTest, AllRanksGoneAtOnceStartAgain) {
  begin(2);
  reach_loop();
  const WorkerId first = worker(0);
  const WorkerId second = worker(1);
  die(first);
  const WorkerId replacement = worker(0);
  die(second);
  EXPECT_EQ(coordinator_->mode(), Mode::Restarting);
  die(replacement);
  EXPECT_EQ(coordinator_->mode(), Mode::Starting);
}

TEST_F(CoordinatorTest, TheEndOfTheLoopWaitsForAll) {
  begin(2);
  reach_loop();
  say(worker(0), Finished{.epoch = 1, .step = 1});
  EXPECT_TRUE(sent<Release>().empty());
  say(worker(1), Finished{.epoch = 1, .step = 1});
  EXPECT_EQ(sent<Release>().size(), 2u);
  take(coordinator_->on_exit(now_, worker(0), {}, ""));
  EXPECT_FALSE(end());
  take(coordinator_->on_exit(now_, worker(1), {}, ""));
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitDone);
}

TEST_F(CoordinatorTest, ADeathWhileOthersWaitAtTheEndIsRecovered) {
  begin(2);
  reach_loop();
  say(worker(0), Finished{.epoch = 1, .step = 1});
  die(worker(1));
  EXPECT_EQ(coordinator_->mode(), Mode::Recovering);
  EXPECT_EQ(sent<Abort>().back().first, worker(0));
}

TEST_F(CoordinatorTest, AStopLetsRanksLeaveWithTheCodeThatAsksForMore) {
  begin(2);
  reach_loop();
  coordinator_->stop(kExitTryLater);
  take(coordinator_->on_exit(now_, worker(0), {.code = 75, .signal = 0}, ""));
  take(coordinator_->on_exit(now_, worker(1), {.code = 75, .signal = 0}, ""));
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitTryLater);
}

TEST_F(CoordinatorTest, AFaultsTimesAreFilledAsItsPhasesEnd) {
  begin(2);
  reach_loop();
  const Nanos began = now_;
  die(worker(1));
  say(worker(1), Attach{});
  now_ += milliseconds(10);
  ready(0, 1);
  ready(1, kNoStep);
  now_ += milliseconds(10);
  restored(0);
  restored(1);
  now_ += milliseconds(10);
  step_done(1);
  const Fault& fault = coordinator_->faults()[0];
  EXPECT_EQ(fault.seen_at, began);
  EXPECT_EQ(fault.fenced_at, began);
  EXPECT_EQ(fault.regrouped_at, began + milliseconds(10));
  EXPECT_EQ(fault.restored_at, began + milliseconds(20));
  EXPECT_EQ(fault.first_step_at, now_);
  EXPECT_TRUE(fault.in_place);
  EXPECT_EQ(ordered<FaultClosed>().size(), 1u);
}

TEST_F(CoordinatorTest, RanksThatWaitForOneThatLeftQuietlyEndTheRun) {
  begin(2);
  say(worker(0), Attach{});
  say(worker(1), Attach{});
  take(coordinator_->on_exit(now_, worker(1), {}, ""));
  ready(0, 0);
  ASSERT_TRUE(end());
  EXPECT_EQ(end()->exit_code, kExitFailed);
}

}  // namespace
}  // namespace holdfast::run
