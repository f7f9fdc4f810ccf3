// Simulated children: what a parent sees of them, and how they end.
#include "sim/process_table.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "sim/sim_world.h"

namespace holdfast::sim {
namespace {

/// A program made of one function, which may keep things alive in its actor.
class Script final : public Actor {
 public:
  explicit Script(std::shared_ptr<int> alive) : alive_(std::move(alive)) {}
  int exit_code() const override { return 7; }

 private:
  std::shared_ptr<int> alive_;
};

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() : parent_(cluster_.main("a")) {
    program("sleep", [](SimWorld&) {});
    program("tick", [this](SimWorld& world) { tick(world); });
  }

  void program(const std::string& name, std::function<void(SimWorld&)> body) {
    cluster_.add_program(name, [this, body = std::move(body)](SimWorld& world, const SpawnSpec&) {
      worlds_.push_back(&world);
      body(world);
      return std::make_unique<Script>(actors_);
    });
  }

  void tick(SimWorld& world) {
    ++ticks_;
    world.loop().call_after(10ms, [this, &world] { tick(world); });
  }

  SpawnSpec spec(const std::string& name, bool die_with_us = true) {
    SpawnSpec spec;
    spec.argv = {name};
    spec.die_with_us = die_with_us;
    return spec;
  }

  ProcessEvents events() {
    ProcessEvents events;
    events.on_exit = [this](ExitStatus status) { exit_ = status; };
    events.on_stopped = [this] { said_ += "stopped "; };
    events.on_continued = [this] { said_ += "continued "; };
    events.on_output = [this](world::Stream, BytesView bytes) { said_ += as_text(bytes); };
    return events;
  }

  std::unique_ptr<world::Process> spawn(const SpawnSpec& wanted) {
    auto child = parent_.processes().spawn(wanted, events());
    EXPECT_TRUE(child);
    cluster_.run_for(100ms);
    return *std::move(child);
  }
  std::unique_ptr<world::Process> spawn(const std::string& name) { return spawn(spec(name)); }

  Cluster cluster_{1};
  SimWorld& parent_;
  std::shared_ptr<int> actors_ = std::make_shared<int>();
  std::vector<SimWorld*> worlds_;
  std::optional<ExitStatus> exit_;
  std::string said_;
  int ticks_ = 0;
};

TEST_F(ProcessTest, AnUnknownProgramIsNotFound) {
  const auto child = parent_.processes().spawn(spec("nothing"), {});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code(), Code::NotFound);
}

TEST_F(ProcessTest, AModuleIsFoundByItsName) {
  program("-m holdfast.worker", [](SimWorld& world) { world.exit(3); });
  SpawnSpec wanted;
  wanted.argv = {"/usr/bin/python3", "-m", "holdfast.worker", "train.py"};
  const auto child = spawn(wanted);
  EXPECT_EQ(exit_, (ExitStatus{.code = 3, .signal = 0}));
}

TEST_F(ProcessTest, StoppingItsLoopEndsAProgramWithItsExitCode) {
  program("ends", [](SimWorld& world) { world.loop().call_after(1ms, [&world] { world.loop().stop(); }); });
  const auto child = spawn("ends");
  EXPECT_EQ(exit_, (ExitStatus{.code = 7, .signal = 0}));
  EXPECT_FALSE(child->running());
}

TEST_F(ProcessTest, AKilledProcessDoesNothingMoreAndItsProgramIsDestroyed) {
  const auto child = spawn("tick");
  EXPECT_EQ(actors_.use_count(), 2);
  child->signal(SIGKILL);
  const int ticks = ticks_;
  cluster_.run_for(1s);
  EXPECT_EQ(ticks_, ticks);
  EXPECT_EQ(exit_, (ExitStatus{.code = 0, .signal = SIGKILL}));
  EXPECT_EQ(actors_.use_count(), 1);
}

TEST_F(ProcessTest, AProcessKilledWithinItsOwnCodeRunsToTheEndOfItWithoutEffect) {
  bool came_back = false;
  program("suicide", [&](SimWorld& world) {
    world.signal(SIGKILL);
    came_back = true;
    EXPECT_FALSE(world.disk().make_dirs("/never"));
    EXPECT_EQ(world.loop().call_after(1ms, [] { FAIL(); }), world::kNoTimer);
  });
  const auto child = spawn("suicide");
  EXPECT_TRUE(came_back);
  EXPECT_FALSE(cluster_.node("a").disk().exists("/never"));
  EXPECT_EQ(actors_.use_count(), 1);
}

TEST_F(ProcessTest, AStoppedProcessWaitsAndItsParentIsTold) {
  const auto child = spawn("tick");
  child->signal(SIGSTOP);
  const int ticks = ticks_;
  cluster_.run_for(1s);
  EXPECT_EQ(ticks_, ticks);
  EXPECT_EQ(said_, "stopped ");
  EXPECT_EQ(child->usage()->second, 'T');
  child->signal(SIGCONT);
  cluster_.run_for(1s);
  EXPECT_GT(ticks_, ticks + 50);
  EXPECT_EQ(said_, "stopped continued ");
}

TEST_F(ProcessTest, AStoppedProcessActsOnSigtermOnlyOnceItRuns) {
  const auto child = spawn("tick");
  child->signal(SIGSTOP);
  child->signal(SIGTERM);
  cluster_.run_for(1s);
  EXPECT_FALSE(exit_);
  child->signal(SIGCONT);
  cluster_.run_for(1s);
  EXPECT_EQ(exit_, (ExitStatus{.code = 0, .signal = SIGTERM}));
}

TEST_F(ProcessTest, AStoppedProcessIsKilledAtOnce) {
  const auto child = spawn("tick");
  child->signal(SIGSTOP);
  child->signal(SIGKILL);
  cluster_.run_for(10ms);
  EXPECT_TRUE(exit_);
}

TEST_F(ProcessTest, AFrozenProcessWaitsAndNobodyIsTold) {
  const auto child = spawn("tick");
  worlds_.at(0)->freeze();
  const int ticks = ticks_;
  cluster_.run_for(1s);
  EXPECT_EQ(ticks_, ticks);
  EXPECT_EQ(said_, "");
  worlds_.at(0)->thaw();
  cluster_.run_for(1s);
  EXPECT_GT(ticks_, ticks);
}

TEST_F(ProcessTest, AHandledSignalIsHandledAndNotDeadly) {
  program("handles", [this](SimWorld& world) { world.processes().on_signal(SIGTERM, [this] { said_ += "term "; }); });
  const auto child = spawn("handles");
  child->signal(SIGTERM);
  child->signal(SIGTERM);
  cluster_.run_for(1s);
  EXPECT_EQ(said_, "term term ");
  EXPECT_TRUE(child->running());
}

TEST_F(ProcessTest, AnUnkillableProcessDiesOnlyWhenItIsReleased) {
  const auto child = spawn("tick");
  worlds_.at(0)->make_unkillable();
  child->signal(SIGKILL);
  cluster_.run_for(1s);
  EXPECT_FALSE(exit_);
  EXPECT_EQ(child->usage()->second, 'D');
  EXPECT_EQ(parent_.processes().kill_all(1s), std::vector<pid_t>{child->pid()});
  worlds_.at(0)->release();
  cluster_.run_for(1s);
  EXPECT_EQ(exit_, (ExitStatus{.code = 0, .signal = SIGKILL}));
}

TEST_F(ProcessTest, ThePolicyMakesProcessesUnkillableForAWhile) {
  cluster_.policy.process.unkillable = 1;
  cluster_.policy.process.unkillable_for = {3s, 3s};
  const auto child = spawn("tick");
  child->signal(SIGKILL);
  cluster_.run_for(2s);
  EXPECT_FALSE(exit_);
  cluster_.run_for(2s);
  EXPECT_TRUE(exit_);
}

TEST_F(ProcessTest, ChildrenDieWithTheirParentWhereAskedTo) {
  const auto goes = spawn(spec("sleep", true));
  const auto stays = spawn(spec("sleep", false));
  parent_.signal(SIGKILL);
  EXPECT_EQ(cluster_.alive(), std::vector<pid_t>{stays->pid()});
}

TEST_F(ProcessTest, HelpersEndWithTheirLeader) {
  pid_t helper = 0;
  program("rank", [&](SimWorld& world) { helper = world.fork_helper({"tick"}); });
  const auto child = spawn("rank");
  EXPECT_EQ(cluster_.alive(), (std::vector<pid_t>{parent_.pid(), child->pid(), helper}));
  child->signal(SIGKILL);
  cluster_.run_for(1s);
  EXPECT_EQ(cluster_.alive(), std::vector<pid_t>{parent_.pid()});
}

TEST_F(ProcessTest, ASubreaperEndsWhatADeadChildLeftInOtherGroups) {
  parent_.become_subreaper();
  std::unique_ptr<world::Process> inner;
  program("outer", [&](SimWorld& world) { inner = *world.processes().spawn(spec("tick", false), {}); });
  const auto child = spawn("outer");
  EXPECT_EQ(cluster_.alive().size(), 3U);
  child->signal(SIGKILL);
  cluster_.run_for(1s);
  EXPECT_EQ(cluster_.alive(), std::vector<pid_t>{parent_.pid()});
}

TEST_F(ProcessTest, AGroupIsSignalledWithItsHelpersUntilItIsReaped) {
  program("rank", [](SimWorld& world) { world.fork_helper({"tick"}); });
  const auto child = spawn("rank");
  child->signal_group(SIGKILL);
  EXPECT_EQ(cluster_.alive(), std::vector<pid_t>{parent_.pid()});
}

TEST_F(ProcessTest, KillAllReachesChildrenHelpersAndOrphans) {
  parent_.become_subreaper();
  program("rank", [](SimWorld& world) { world.fork_helper({"tick"}); });
  const auto first = spawn("rank");
  const auto second = spawn("rank");
  EXPECT_TRUE(parent_.processes().kill_all(1s).empty());
  EXPECT_EQ(cluster_.alive(), std::vector<pid_t>{parent_.pid()});
  cluster_.run_for(1s);
  EXPECT_TRUE(exit_);
}

TEST_F(ProcessTest, OutputComesInOrderAndBeforeTheExit) {
  program("talks", [](SimWorld& world) {
    for (const char* text : {"a", "b", "c"}) world.print(world::Stream::Out, text);
    world.exit(0);
  });
  auto heard = events();
  heard.on_exit = [this](ExitStatus) { said_ += "exit"; };
  const auto child = parent_.processes().spawn(spec("talks"), heard);
  cluster_.run_for(1s);
  EXPECT_EQ(said_, "abcexit");
}

TEST_F(ProcessTest, OutputGoesToAFileWhereAskedTo) {
  program("talks", [](SimWorld& world) {
    world.print(world::Stream::Err, "one ");
    world.print(world::Stream::Err, "two");
  });
  SpawnSpec wanted = spec("talks");
  wanted.err = {.to_callback = false, .file = "/log"};
  const auto child = spawn(wanted);
  EXPECT_EQ(as_text(*world::read_file(parent_.disk(), "/log", 100)), "one two");
  EXPECT_EQ(said_, "");
}

TEST_F(ProcessTest, NothingIsHeardOfAChildOnceItsHandleIsDestroyed) {
  auto child = spawn("tick");
  child->signal(SIGSTOP);
  child->signal(SIGKILL);
  child.reset();
  cluster_.run_for(1s);
  EXPECT_EQ(said_, "");
  EXPECT_FALSE(exit_);
}

TEST_F(ProcessTest, SharedMemoryOutlivesTheChildAndIsSeenByBoth) {
  program("marks", [](SimWorld& world) { world.ring()[0] = std::byte{42}; });
  const auto memory = *parent_.processes().make_shared_memory(64);
  SpawnSpec wanted = spec("marks");
  wanted.ring = memory.get();
  const auto child = spawn(wanted);
  child->signal(SIGKILL);
  cluster_.run_for(1s);
  EXPECT_EQ(memory->bytes()[0], std::byte{42});
  EXPECT_EQ(memory->bytes().size(), 64U);
}

TEST_F(ProcessTest, EnvironmentIsInheritedAndOverridden) {
  std::optional<std::string> mine, grandparents, none;
  program("inner", [&](SimWorld& world) {
    mine = world.env("MINE");
    grandparents = world.env("THEIRS");
    none = world.env("NONE");
  });
  std::unique_ptr<world::Process> inner;
  program("outer", [&](SimWorld& world) {
    SpawnSpec wanted = spec("inner");
    wanted.env = {{"MINE", "inner"}};
    inner = *world.processes().spawn(wanted, {});
  });
  SpawnSpec wanted = spec("outer");
  wanted.env = {{"MINE", "outer"}, {"THEIRS", "outer"}};
  const auto child = spawn(wanted);
  EXPECT_EQ(mine, "inner");
  EXPECT_EQ(grandparents, "outer");
  EXPECT_FALSE(none);
}

TEST_F(ProcessTest, ASpinningProcessUsesCpuAndASleepingOneDoesNot) {
  const auto child = spawn("sleep");
  EXPECT_EQ(child->usage()->second, 'S');
  worlds_.at(0)->spin(true);
  cluster_.run_for(3s);
  EXPECT_EQ(child->usage()->second, 'R');
  EXPECT_EQ(child->usage()->first, 3s);
  worlds_.at(0)->spin(false);
  cluster_.run_for(3s);
  EXPECT_EQ(child->usage()->first, 3s);
}

TEST_F(ProcessTest, UsageEndsWithTheReaping) {
  const auto child = spawn("sleep");
  child->signal(SIGKILL);
  EXPECT_EQ(child->usage()->second, 'Z');
  cluster_.run_for(1s);
  ASSERT_FALSE(child->usage());
  EXPECT_EQ(child->usage().error().code(), Code::NotFound);
}

TEST_F(ProcessTest, APowerFailureTakesAllProcessesOfTheMachineAndNoOther) {
  const auto child = spawn("tick");
  SimWorld& other = cluster_.main("b");
  cluster_.node("a").crash();
  EXPECT_EQ(cluster_.alive(), std::vector<pid_t>{other.pid()});
  cluster_.node("a").restart();
  EXPECT_TRUE(parent_.alive());
  cluster_.run_for(1s);
  EXPECT_FALSE(exit_) << "the parent of before the crash is gone";
}

}  // namespace
}  // namespace holdfast::sim
