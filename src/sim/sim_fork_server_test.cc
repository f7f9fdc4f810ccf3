// The simulated fork server, alive, dead and stopped.
#include "sim/sim_fork_server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "sim/sim_world.h"

namespace holdfast::sim {
namespace {

class ForkServerTest : public testing::Test {
 protected:
  explicit ForkServerTest(std::uint64_t seed = 1) : cluster_(seed), agent_(cluster_.main("a")) {
    agent_.become_subreaper();
    cluster_.add_program("train.py", [](SimWorld& world, const SpawnSpec& spec) -> std::unique_ptr<Actor> {
      if (spec.argv.size() > 1) world.exit(std::stoi(spec.argv[1]));
      return nullptr;
    });
  }

  void start() {
    ProcessEvents events;
    events.on_exit = [this](ExitStatus) { server_exited_ = true; };
    auto server = agent_.processes().spawn_fork_server({}, events, [this](const Result<int>& threads) {
      ready_ = threads ? *threads : -1;
      if (!threads) refusal_ = threads.error().code();
    });
    ASSERT_TRUE(server);
    server_ = *std::move(server);
  }

  void fork(const std::vector<std::string>& argv = {"train.py"}) {
    SpawnSpec spec;
    spec.argv = argv;
    ProcessEvents events;
    events.on_exit = [this](ExitStatus status) { said_ += "exit " + std::to_string(status.code); };
    server_->fork(spec, events, [this](Result<std::unique_ptr<world::Process>> result) {
      said_ += result ? "forked " : "failed ";
      if (result) child_ = *std::move(result);
    });
  }

  Cluster cluster_;
  SimWorld& agent_;
  std::unique_ptr<world::ForkServer> server_;
  std::unique_ptr<world::Process> child_;
  std::optional<int> ready_;
  std::optional<Code> refusal_;
  bool server_exited_ = false;
  std::string said_;
};

TEST_F(ForkServerTest, GreetsThenForksInMilliseconds) {
  start();
  cluster_.run_for(1s);
  EXPECT_EQ(ready_, 1);
  fork();
  cluster_.run_for(20ms);
  EXPECT_EQ(said_, "forked ");
  EXPECT_TRUE(child_->running());
}

TEST_F(ForkServerTest, NeedsASubreaper) {
  SimWorld& other = cluster_.main("b");
  EXPECT_FALSE(other.processes().spawn_fork_server({}, {}, [](const auto&) {}));
}

TEST_F(ForkServerTest, MayGreetWithWhyItCannotServe) {
  cluster_.policy.process.fork_server_fails = 1;
  start();
  cluster_.run_for(1s);
  EXPECT_EQ(ready_, -1);
  EXPECT_EQ(refusal_, Code::BadInput);
}

TEST_F(ForkServerTest, AChildThatEndsAtOnceIsHeardOfAfterItsForking) {
  start();
  for (int i = 0; i < 20; ++i) {
    said_.clear();
    fork({"train.py", "3"});
    cluster_.run_for(1s);
    EXPECT_EQ(said_, "forked exit 3");
  }
}

TEST_F(ForkServerTest, ADeadServerAnswersUnavailable) {
  start();
  cluster_.run_for(1s);
  server_->process().signal(SIGKILL);
  fork();
  cluster_.run_for(1s);
  EXPECT_EQ(said_, "failed ");
  EXPECT_TRUE(server_exited_);
}

TEST_F(ForkServerTest, AServerThatDiesBeforeItIsReadySaysSo) {
  start();
  server_->process().signal(SIGKILL);
  cluster_.run_for(1s);
  EXPECT_EQ(ready_, -1);
}

TEST_F(ForkServerTest, AStoppedServerIsGivenUpAfterTenSeconds) {
  start();
  cluster_.run_for(1s);
  server_->process().signal(SIGSTOP);
  fork();
  cluster_.run_for(9s);
  EXPECT_EQ(said_, "");
  cluster_.run_for(2s);
  EXPECT_EQ(said_, "failed ");
}

TEST_F(ForkServerTest, AChildForkedTooLateIsKilled) {
  start();
  cluster_.run_for(1s);
  server_->process().signal(SIGSTOP);
  fork();
  cluster_.run_for(11s);
  server_->process().signal(SIGCONT);
  cluster_.run_for(1s);
  EXPECT_EQ(cluster_.alive().size(), 2U) << "agent and server";
}

TEST_F(ForkServerTest, WhenTheServerDiesItsChildrenStayAndNoOrphanDoes) {
  int orphans = 0;
  for (int i = 0; i < 200; ++i) {
    start();
    cluster_.run_for(1s);
    said_.clear();
    child_.reset();
    fork();
    cluster_.run_for(std::chrono::microseconds(100 * i));
    orphans += said_.empty() && cluster_.alive().size() == 3 ? 1 : 0;  // forked, and the answer not yet heard
    server_->process().signal(SIGKILL);
    cluster_.run_for(1s);
    EXPECT_EQ(cluster_.alive().size(), said_ == "forked " ? 2U : 1U);
    EXPECT_TRUE(agent_.processes().kill_all(1s).empty());
  }
  EXPECT_GT(orphans, 0);
}

TEST_F(ForkServerTest, ADestroyedServerEndsAndAnswersNobody) {
  start();
  cluster_.run_for(1s);
  fork();
  server_.reset();
  cluster_.run_for(1s);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(cluster_.alive(), std::vector<pid_t>{agent_.pid()});
}

TEST_F(ForkServerTest, ARefusedForkSaysSo) {
  cluster_.policy.process.fork_fails = 1;
  start();
  cluster_.run_for(1s);
  fork();
  cluster_.run_for(1s);
  EXPECT_EQ(said_, "failed ");
}

TEST_F(ForkServerTest, ChildrenDieWithTheAgentNotWithTheServer) {
  start();
  cluster_.run_for(1s);
  fork();
  cluster_.run_for(1s);
  agent_.signal(SIGKILL);
  cluster_.run_for(2s);
  EXPECT_TRUE(cluster_.alive().empty());
}

}  // namespace
}  // namespace holdfast::sim
