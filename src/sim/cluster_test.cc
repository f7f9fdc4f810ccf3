// A small cluster at work: that it replays, that seeds differ, how time is passed.
#include "sim/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "sim/seeds.h"
#include "sim/sim_world.h"

namespace holdfast::sim {
namespace {

world::Address agent_at() { return {"127.0.0.1", 4000}; }

/// Keeps `ranks` children alive, answers each message with another, and writes a file now and then.
class Agent final : public Actor {
 public:
  explicit Agent(SimWorld& world) : world_(world) {
    world.become_subreaper();
    auto listener = world.net().listen(agent_at(), "s", [this](std::unique_ptr<Connection> peer) {
      Connection* one = peer.get();
      one->on_message([one](BytesView bytes) { one->send(bytes); });
      one->on_close([](const std::string&) {});
      peers_.push_back(std::move(peer));
    });
    if (!listener) return;
    listener_ = *std::move(listener);
    for (int i = 0; i < 4; ++i) spawn();
    save();
  }

 private:
  void spawn() {
    SpawnSpec spec;
    spec.argv = {"rank"};
    ProcessEvents events;
    events.on_exit = [this](ExitStatus) { spawn(); };
    auto child = world_.processes().spawn(spec, std::move(events));
    if (child) children_.push_back(*std::move(child));
  }
  void save() {
    world_.loop().background([this] { (void)world::write_file_atomically(world_.disk(), "/state", as_bytes("state")); },
                             [this] { world_.loop().call_after(50ms, [this] { save(); }); });
  }

  SimWorld& world_;
  std::unique_ptr<world::Listener> listener_;
  std::vector<std::unique_ptr<Connection>> peers_;
  std::vector<std::unique_ptr<world::Process>> children_;
};

/// Sends a beat every 10 ms, and dies by chance.
class RankActor final : public Actor {
 public:
  explicit RankActor(world::World& world) : world_(world) {
    world.net().connect(agent_at(), "s", 1s, [this](Result<std::unique_ptr<Connection>> result) {
      if (!result) return world_.loop().stop();
      agent_ = *std::move(result);
      agent_->on_message([](BytesView) {});
      agent_->on_close([](const std::string&) {});
      beat();
    });
  }
  int exit_code() const override { return 1; }

 private:
  void beat() {
    if (world_.random().next() % 100 == 0) return world_.loop().stop();
    agent_->send(as_bytes("beat"));
    world_.loop().call_after(10ms, [this] { beat(); });
  }

  world::World& world_;
  std::unique_ptr<Connection> agent_;
};

void add_programs(Cluster& cluster) {
  cluster.add_program("agent", [](SimWorld& world, const SpawnSpec&) { return std::make_unique<Agent>(world); });
  cluster.add_program("rank", [](world::World& world, const SpawnSpec&) { return std::make_unique<RankActor>(world); });
}

SpawnSpec program(const std::string& name) {
  SpawnSpec spec;
  spec.argv = {name};
  return spec;
}

/// A stormy half minute; its trace hash.
std::uint64_t storm(std::uint64_t seed, Nanos lasts = 10s) {
  Cluster cluster(seed);
  add_programs(cluster);
  cluster.policy.net.duplicate = 0.05;
  cluster.policy.net.reorder = 0.05;
  cluster.policy.net.cut = 0.001;
  SimWorld& agent = cluster.spawn("a", program("agent"));
  cluster.after(lasts / 3, [&] { agent.signal(SIGSTOP); });
  cluster.after(lasts / 2, [&] { agent.signal(SIGCONT); });
  cluster.run_for(lasts);
  EXPECT_TRUE(agent.alive());
  EXPECT_TRUE(cluster.run_until([&] { return cluster.alive().size() == 5; }, 1s));  // one may just have left
  return cluster.trace_hash();
}

TEST(Cluster, TheSameSeedGoesTheSameWay) {
  for (const std::uint64_t seed : seeds(20)) {
    HOLDFAST_SIM_TRACE(seed);
    EXPECT_EQ(storm(seed), storm(seed));
  }
}

TEST(Cluster, SeedsGoDifferentWays) {
  std::set<std::uint64_t> ways;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) ways.insert(storm(seed, 1s));
  EXPECT_EQ(ways.size(), 20U);
}

TEST(Cluster, TracesWhatHappens) {
  std::vector<std::string> lines;
  Cluster cluster(1);
  cluster.set_trace([&lines](const std::string& line) { lines.push_back(line); });
  cluster.network().describe = [](BytesView bytes) { return "<" + std::string(as_text(bytes)) + ">"; };
  add_programs(cluster);
  cluster.spawn("a", program("agent"));
  cluster.run_for(1s);
  const auto has = [&lines](const std::string& text) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(has("a/1001: starts agent"));
  EXPECT_TRUE(has("<beat>"));
  EXPECT_TRUE(has("sync /state.new"));
}

TEST(Cluster, RunUntilStopsAtTheEventThatMakesItTrue) {
  Cluster cluster(1);
  bool reached = false;
  cluster.after(2s, [&] { reached = true; });
  EXPECT_FALSE(cluster.run_until([&] { return reached; }, 1s));
  const Nanos before = cluster.now();
  EXPECT_TRUE(cluster.run_until([&] { return reached; }, 5s));
  EXPECT_EQ(cluster.now() - before, 1s);
}

TEST(Cluster, RunUntilIdleRunsWhatIsLeft) {
  Cluster cluster(1);
  int ran = 0;
  cluster.after(1h, [&] { cluster.after(1h, [&] { ++ran; }); });
  cluster.run_until_idle();
  EXPECT_EQ(ran, 1);
}

TEST(Cluster, EndsInTheMiddleOfEverything) {
  for (int ms = 0; ms < 100; ms += 7) {
    Cluster cluster(1);
    add_programs(cluster);
    cluster.spawn("a", program("agent"));
    cluster.run_for(std::chrono::milliseconds(ms));
  }
}

TEST(Cluster, ACrashBeforeEveryDiskCallOfAMachineAtWorkLeavesNothingRunning) {
  for (std::uint64_t calls = 0; calls < 30; ++calls) {
    Cluster cluster(1);
    add_programs(cluster);
    cluster.spawn("a", program("agent"));
    cluster.node("a").crash_after(calls);
    EXPECT_TRUE(cluster.run_until([&] { return !cluster.node("a").up(); }, 60s));
    EXPECT_TRUE(cluster.alive().empty());
    cluster.node("a").restart();
    SimWorld& again = cluster.spawn("a", program("agent"));
    cluster.run_for(1s);
    EXPECT_TRUE(again.alive());
  }
}

TEST(Cluster, AKillBeforeEveryCallOfAProcessEndsItThere) {
  for (std::uint64_t calls = 0; calls < 50; ++calls) {
    Cluster cluster(1);
    add_programs(cluster);
    SimWorld& agent = cluster.spawn("a", program("agent"));
    agent.kill_after(calls);
    EXPECT_TRUE(cluster.run_until([&] { return !agent.alive(); }, 60s));
    EXPECT_EQ(agent.calls(), calls);
    EXPECT_TRUE(cluster.alive().empty()) << "its children die with it";
  }
}

}  // namespace
}  // namespace holdfast::sim
