// Scripts that know nothing of Holdfast, in the simulated world: all ranks start again after a fault, each place is
// held by one process at a time, and nobody is left behind.
#include <gtest/gtest.h>

#include <csignal>

#include "sim/seeds.h"
#include "tests/sim/run_world.h"

namespace holdfast::trial {
namespace {

/// Who is which rank, and what was wrong with it.
struct Roll {
  std::map<std::string, pid_t> ranks;
  int completed = 0;
  std::string wrong;
};

/// Works for a while and is done.
class PlainRank final : public sim::Actor {
 public:
  PlainRank(sim::SimWorld& world, Roll& roll) {
    pid_t& place = roll.ranks[world.env("RANK").value_or("")];
    if (place != 0 && world.cluster().world_of(place).alive()) roll.wrong = "two processes are one rank";
    if (!world.env("MASTER_PORT") || world.env("TORCHELASTIC_RESTART_COUNT") == std::nullopt)
      roll.wrong = "no place to meet";
    place = world.pid();
    sim::SimRandom random(world.random().next());
    // Some clean up on SIGTERM, some don't hear it.
    if (random.chance(0.2)) world.processes().on_signal(SIGTERM, [] {});
    world.loop().call_after(random.draw({milliseconds(300), milliseconds(900)}), [&world, &roll] {
      ++roll.completed;
      world.exit(0);
    });
  }
};

TEST(RunPlainSim, PlainScriptsStartAgainUntilAllAreDone) {
  const Quiet quiet;
  for (const std::uint64_t seed : sim::seeds(100)) {
    HOLDFAST_SIM_TRACE(seed);
    sim::SimRandom random(sim::mix(seed));
    RunSetup setup = usual_setup(random);
    setup.options.command = {"plain.py"};
    Roll roll;
    RunWorld world(seed, setup);
    world.cluster().add_program("plain.py", [&roll](sim::SimWorld& process, const world::SpawnSpec&) {
      return std::make_unique<PlainRank>(process, roll);
    });
    const auto kill_one = [&] {
      const std::vector<pid_t> ranks = world.running("plain.py");
      if (ranks.empty()) return;
      world.cluster().world_of(ranks[random.below(ranks.size())]).signal(random.chance(0.8) ? SIGKILL : SIGSTOP);
    };
    for (std::uint64_t left = random.below(5); left > 0; --left) {
      world.cluster().after(random.draw({milliseconds(100), seconds(4)}), kill_one);
    }
    world.launch();
    ASSERT_TRUE(world.run()) << "the launcher does not end";
    world.check_end();
    EXPECT_EQ(world.launcher().exit_status(), world::ExitStatus{});
    EXPECT_EQ(roll.wrong, "");
    EXPECT_GE(roll.completed, static_cast<int>(setup.options.policy.world_size));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast::trial
