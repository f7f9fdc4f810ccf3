// Runs of the real launcher in a simulated world, with faults drawn from the seed: whatever happens, no completed step
// is lost, every rank has one owner, nobody is left behind, and the run ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "sim/seeds.h"
#include "tests/sim/run_strikes.h"
#include "tests/sim/run_world.h"

namespace holdfast::trial {
namespace {

class RunSim : public testing::Test {
 protected:
  /// Runs `body` for every seed, up to the first that fails.
  static void each_seed(std::uint64_t count,
                        const std::function<void(std::uint64_t seed, sim::SimRandom& random)>& body) {
    const Quiet quiet;
    for (const std::uint64_t seed : sim::seeds(count)) {
      HOLDFAST_SIM_TRACE(seed);
      sim::SimRandom random(sim::mix(seed));
      body(seed, random);
      if (HasFailure()) return;
    }
  }

  /// One run to its end, hit by strikes; it must succeed.
  static void survives(std::uint64_t seed, RunSetup setup, const std::vector<Strike>& kinds, int least, int most,
                       const std::function<void(RunWorld&)>& prepare = {}) {
    RunWorld world(seed, std::move(setup));
    if (prepare) prepare(world);
    world.launch();
    Strikes strikes(world, sim::SimRandom(seed).split(1), kinds, least, most);
    ASSERT_TRUE(world.run([&] { strikes.look(); })) << "the launcher does not end";
    world.check_end();
    world.check_success();
  }

  /// Launches anew until a launcher ends by itself. Its exit code.
  static void finishes_at_last(RunWorld& world, const std::function<void()>& each_event) {
    for (int launch = 0; launch < 20; ++launch) {
      world.launch();
      ASSERT_TRUE(world.run(each_event)) << "the launcher does not end";
      if (!world.node().up()) world.node().restart();
      world.check_end();
      if (HasFailure()) return;
      if (!world.record() || world.launcher().exit_status().signal != 0) continue;  // it was killed
      if (world.exit_code() == run::kExitDone) return world.check_success();
      ASSERT_EQ(world.exit_code(), run::kExitTryLater) << world.record()->why;
    }
    FAIL() << "no launch of twenty came to the end";
  }
};

TEST_F(RunSim, WithoutFaultsNothingIsRedoneAndNobodyIsBlamed) {
  each_seed(50, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    RunWorld world(seed, setup);
    world.launch();
    Strikes strikes(world, random.split(1), {Strike::JumpWallClock, Strike::FreezeLauncherAWhile}, 0, 3);
    ASSERT_TRUE(world.run([&] { strikes.look(); }));
    world.check_end();
    world.check_success();
    ASSERT_TRUE(world.record());
    EXPECT_TRUE(world.record()->faults.empty());
    EXPECT_EQ(world.record()->steps_redone, 0u);
    EXPECT_EQ(world.record()->epochs, 1u);
  });
}

TEST_F(RunSim, KillsOfAnyRanksAtAnyMomentLoseNoStep) {
  each_seed(300, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    setup.training.helpers = random.chance(0.3);
    survives(seed, setup,
             {Strike::KillOne, Strike::KillOne, Strike::KillRankZero, Strike::KillTwo, Strike::KillAll,
              Strike::KillAtACall, Strike::KillAtACall, Strike::KillSpare, Strike::KillForkServer, Strike::KillStore},
             1, 7);
  });
}

TEST_F(RunSim, StopsAndFreezesAndHangsLoseNoStep) {
  each_seed(150, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    if (random.chance(0.5)) {
      const bool holds_lock = random.chance(0.5);
      setup.options.faults = {{.kind = holds_lock ? run::PlannedKind::Gil : run::PlannedKind::Sleep,
                               .step = 4 + static_cast<Step>(random.below(8)),
                               .ranks = {static_cast<Rank>(random.below(setup.options.policy.world_size))}}};
    }
    survives(seed, setup,
             {Strike::Stop, Strike::StopAWhile, Strike::Freeze, Strike::FreezeAWhile, Strike::CutOff,
              Strike::CutOffAWhile, Strike::KillOne, Strike::FreezeAll},
             1, 3);
  });
}

TEST_F(RunSim, MessagesThatComeTwiceOrLateOrNeverLoseNoStep) {
  each_seed(150, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    setup.training.order_gap = milliseconds(10);
    survives(seed, setup, {Strike::KillOne, Strike::KillTwo, Strike::KillAtACall, Strike::KillForkServer}, 0, 4,
             [&](RunWorld& world) {
               world.cluster().policy.net.duplicate = random.chance(0.5) ? 0.2 : 0;
               world.cluster().policy.net.reorder = random.chance(0.5) ? 0.2 : 0;
               world.cluster().policy.net.cut = random.chance(0.5) ? 0.002 : 0;
             });
  });
}

TEST_F(RunSim, SlowAndFullAndFailingDisksStopNoTraining) {
  each_seed(100, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    survives(seed, setup, {Strike::SlowDisk, Strike::FillDisk, Strike::FailDisk, Strike::FailNames}, 1, 5);
  });
}

TEST_F(RunSim, ADamagedCheckpointIsPassedOver) {
  each_seed(100, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    survives(seed, setup, {Strike::FlipAndKillAll, Strike::KillAll, Strike::KillOne, Strike::SlowDisk}, 1, 4);
  });
}

TEST_F(RunSim, ACheckpointThatAFaultSpoiltIsTakenAgainAtOnce) {
  constexpr Step kEvery = 6;
  int spoilt = 0;
  each_seed(60, [&](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    setup.options.ckpt_every_steps = kEvery;
    setup.options.ckpt_every = {};
    RunWorld world(seed, setup);
    std::set<Step> seen;
    bool struck = false;
    world.launch();
    ASSERT_TRUE(world.run([&] {
      for (const Step step : world.committed()) seen.insert(step);
      if (struck || world.oracle().done() < kEvery || world.ranks().empty()) return;
      struck = true;
      world.cluster().world_of(world.ranks().front()).signal(SIGKILL);
    }));
    world.check_end();
    world.check_success();
    if (!seen.contains(kEvery)) ++spoilt;
    // A step or two for the recovery, two for the agreement.
    EXPECT_LE(*seen.begin(), kEvery + 4);
  });
  if (sim::seeds(60).size() > 10) {  // not where one is replayed
    EXPECT_GT(spoilt, 0);
  }
}

TEST_F(RunSim, KilledLaunchersLeaveNobodyAndTheNextOneResumes) {
  each_seed(100, [](std::uint64_t seed, sim::SimRandom& random) {
    RunWorld world(seed, usual_setup(random));
    Strikes strikes(
        world, random.split(1),
        {Strike::KillLauncher, Strike::KillLauncherAtACall, Strike::KillOne, Strike::KillTwo, Strike::SlowDisk}, 1, 6);
    finishes_at_last(world, [&] { strikes.look(); });
  });
}

TEST_F(RunSim, PowerFailuresLoseNoCommittedStep) {
  each_seed(150, [](std::uint64_t seed, sim::SimRandom& random) {
    RunWorld world(seed, usual_setup(random));
    Strikes strikes(world, random.split(1),
                    {Strike::PowerFailure, Strike::PowerFailureAtACall, Strike::PowerFailureAtACall, Strike::KillOne,
                     Strike::KillAll, Strike::SlowDisk},
                    1, 6);
    finishes_at_last(world, [&] { strikes.look(); });
  });
}

TEST_F(RunSim, AStoppedRunGoesOnWhereItStopped) {
  each_seed(80, [](std::uint64_t seed, sim::SimRandom& random) {
    RunWorld world(seed, usual_setup(random));
    Strikes strikes(world, random.split(1), {Strike::AskToStop}, 1, 1);
    world.launch();
    ASSERT_TRUE(world.run([&] { strikes.look(); }));
    world.check_end();
    ASSERT_TRUE(world.record());
    if (world.exit_code() == run::kExitDone) return world.check_success();  // the work was done before it was heard
    ASSERT_EQ(world.exit_code(), run::kExitTryLater) << world.record()->why;
    const Step stopped_at = world.oracle().done();
    world.launch();
    ASSERT_TRUE(world.run());
    world.check_end();
    world.check_success();
    EXPECT_EQ(world.record()->first_step, stopped_at);
    EXPECT_EQ(world.record()->steps_redone, 0u);
  });
}

TEST_F(RunSim, StopsThatMeetOtherFaultsEndAllTheSame) {
  each_seed(100, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    setup.options.grace = seconds(1 + random.below(10));
    RunWorld world(seed, setup);
    Strikes strikes(
        world, random.split(1),
        {Strike::AskToStop, Strike::AskToStop, Strike::KillOne, Strike::KillAll, Strike::Freeze, Strike::FailDisk}, 1,
        5);
    finishes_at_last(world, [&] { strikes.look(); });
  });
}

TEST_F(RunSim, ForksThatFailAndServersThatCannotServeLoseNoStep) {
  each_seed(100, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    if (random.chance(0.2)) setup.options.spawn = run::SpawnWay::Standby;
    survives(seed, setup, {Strike::KillOne, Strike::KillTwo, Strike::KillForkServer, Strike::KillForkServer}, 0, 5,
             [&](RunWorld& world) {
               sim::ProcessPolicy& policy = world.cluster().policy.process;
               policy.fork_fails = random.chance(0.5) ? 0.1 : 0;
               policy.spawn_fails = random.chance(0.5) ? 0.1 : 0;
               policy.fork_server_fails = random.chance(0.3) ? 0.5 : 0;
               policy.fork_server_threads = random.chance(0.2) ? 4 : 1;
             });
  });
}

TEST_F(RunSim, ProcessesThatDieLateHoldUpNobodyForGood) {
  each_seed(60, [](std::uint64_t seed, sim::SimRandom& random) {
    survives(seed, usual_setup(random), {Strike::KillOne, Strike::KillTwo, Strike::Stop, Strike::KillAll}, 1, 4,
             [&](RunWorld& world) {
               world.cluster().policy.process.unkillable = 0.3;
               world.cluster().policy.process.unkillable_for = {milliseconds(1), seconds(2)};
             });
  });
}

TEST_F(RunSim, Behaviour2AProcessThatCannotBeKilledIsGivenUp) {
  each_seed(20, [](std::uint64_t seed, sim::SimRandom& random) {
    RunWorld world(seed, usual_setup(random));
    std::vector<pid_t> stuck;
    world.launch();
    ASSERT_TRUE(world.run([&] {
      if (!stuck.empty() || world.oracle().begun() < 3) return;
      stuck.push_back(world.ranks().front());
      world.cluster().world_of(stuck[0]).make_unkillable();
      world.cluster().world_of(stuck[0]).signal(SIGSTOP);
    }));
    ASSERT_TRUE(world.record());
    EXPECT_EQ(world.exit_code(), run::kExitTryLater);
    ASSERT_FALSE(world.record()->faults.empty());
    EXPECT_EQ(world.record()->faults.back().kind, run::FaultKind::Unkillable);
    EXPECT_EQ(world.running("train.py"), stuck);
    world.cluster().world_of(stuck[0]).release();
    world.check_end();
  });
}

TEST_F(RunSim, Behaviour23NoProgressEndsTheRun) {
  each_seed(30, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    setup.options.policy.tries_without_progress = 3;
    RunWorld world(seed, setup);
    int killed_in = 0;
    world.launch();
    ASSERT_TRUE(world.run([&] {
      if (world.oracle().begun() < 5 || world.oracle().groups_made() == killed_in) return;
      killed_in = world.oracle().groups_made();
      world.cluster().world_of(world.ranks()[random.below(world.ranks().size())]).signal(SIGKILL);
    }));
    world.check_end();
    ASSERT_TRUE(world.record());
    EXPECT_EQ(world.exit_code(), run::kExitDoNotRequeue);
    EXPECT_THAT(world.record()->why, testing::HasSubstr("no progress"));
    EXPECT_LE(world.record()->epochs, 8u);
  });
}

TEST_F(RunSim, AnErrorOfTheScriptItselfEndsTheRunWithoutManyTries) {
  each_seed(20, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    setup.training.raises_at = static_cast<Step>(random.below(15));
    RunWorld world(seed, setup);
    world.launch();
    ASSERT_TRUE(world.run());
    world.check_end();
    ASSERT_TRUE(world.record());
    EXPECT_EQ(world.exit_code(), run::kExitFailed);
    ASSERT_FALSE(world.record()->faults.empty());
    EXPECT_EQ(world.record()->faults.front().kind, run::FaultKind::UserError);
    EXPECT_LE(world.record()->epochs, 4u);
  });
}

// What the fault plan acts out is found, and called by its name.
TEST_F(RunSim, PlannedFaultsAreFoundAndRightlyNamed) {
  using run::PlannedKind;
  each_seed(60, [](std::uint64_t seed, sim::SimRandom& random) {
    RunSetup setup = usual_setup(random);
    setup.training.steps = 150;
    setup.options.policy.world_size = 3 + static_cast<std::uint32_t>(random.below(2));
    setup.options.policy.tries_without_progress = 3;
    setup.options.ckpt_every_steps = 4;
    setup.options.ckpt_every = {};
    setup.options.ckpt_keep = 2;
    const auto any = [&] { return static_cast<Rank>(random.below(setup.options.policy.world_size)); };
    std::vector<PlannedKind> kinds = {PlannedKind::Sigkill,  PlannedKind::Sigstop,        PlannedKind::Sleep,
                                      PlannedKind::Gil,      PlannedKind::KillInRecovery, PlannedKind::FlipCheckpoint,
                                      PlannedKind::DiskFull, PlannedKind::WriterCrash,    PlannedKind::Slow};
    Step step = 10;
    while (!kinds.empty()) {
      const auto kind = kinds.begin() + static_cast<std::ptrdiff_t>(random.below(kinds.size()));
      run::PlannedFault fault{.kind = *kind, .step = step, .ranks = {any()}, .seconds = 0.5};
      if (*kind == PlannedKind::KillInRecovery)
        fault.ranks.push_back((fault.ranks[0] + 1) % setup.options.policy.world_size);
      if (*kind == PlannedKind::FlipCheckpoint) fault.ranks.clear();
      setup.options.faults.push_back(fault);
      step += *kind == PlannedKind::Slow ? 36 : 12;  // nothing else while its signals come
      kinds.erase(kind);
    }
    RunWorld world(seed, setup);
    world.oracle().expects_damage();
    world.launch();
    ASSERT_TRUE(world.run());
    ASSERT_TRUE(world.record());
    for (const run::PassedOverCheckpoint& each : world.record()->passed_over) {
      world.oracle().damage(store::parse_checkpoint_name(each.checkpoint).value_or(store::CheckpointId{}));
    }
    world.check_end();
    world.check_success();
    for (std::size_t index = 0; index < world.record()->injected.size(); ++index) {
      const run::Injected& injected = world.record()->injected[index];
      SCOPED_TRACE(run::planned_word(injected.plan.kind));
      const auto answers = run::answering_faults(*world.record(), index);
      EXPECT_FALSE(answers.empty()) << "not found";
      for (const std::size_t answer : answers) {
        EXPECT_STREQ(run::fault_word(world.record()->faults[answer].kind),
                     run::fault_word(run::expected_kind(injected.plan.kind)));
      }
    }
  });
}

// ---- tests of the test ----

/// In how many of `count` runs with kills the oracle has something to say.
int runs_found_wrong(Planted planted, int count) {
  const Quiet quiet;
  int found = 0;
  for (int seed = 1; seed <= count; ++seed) {
    sim::SimRandom random(sim::mix(static_cast<std::uint64_t>(seed)));
    RunSetup setup = usual_setup(random);
    setup.training.planted = planted;
    RunWorld world(static_cast<std::uint64_t>(seed), setup);
    world.launch();
    Strikes strikes(world, random.split(1), {Strike::KillOne, Strike::KillTwo, Strike::KillRankZero}, 3, 7);
    const auto over = [&] {
      strikes.look();
      return !world.oracle().violations().empty() || !world.launcher().alive();
    };
    world.cluster().run_until(over, minutes(5));
    if (!world.oracle().violations().empty()) ++found;
  }
  return found;
}

TEST(RunOracle, HasNothingToSayWhereNoBugIsPlanted) { EXPECT_EQ(runs_found_wrong(Planted::None, 100), 0); }

TEST(RunOracle, CatchesResultsOfAStaleEpochThatAreAccepted) {
  EXPECT_GE(runs_found_wrong(Planted::LateResults, 100), 3);
}

TEST(RunOracle, CatchesAddressesOfAStaleEpochThatAreAccepted) {
  EXPECT_GE(runs_found_wrong(Planted::OldAddresses, 20), 15);
}

}  // namespace
}  // namespace holdfast::trial
