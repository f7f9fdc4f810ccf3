// Time, chance and the loop of a process that the test drives itself.
#include "sim/sim_loop.h"

#include <gtest/gtest.h>

#include "sim/sim_world.h"

namespace holdfast::sim {
namespace {

TEST(SimLoop, TimersFireAfterTheirDelayAndNotMuchLater) {
  SimWorld world(1);
  const Nanos start = world.clock().steady();
  Nanos fired{};
  world.loop().call_after(50ms, [&] { fired = world.clock().steady(); });
  world.run_for(1s);
  EXPECT_GE(fired - start, 50ms);
  EXPECT_LE(fired - start, 51ms);
}

TEST(SimLoop, CancelledTimersDoNotFire) {
  SimWorld world(1);
  bool fired = false;
  world.loop().cancel(world.loop().call_after(50ms, [&] { fired = true; }));
  world.run_for(1s);
  EXPECT_FALSE(fired);
}

TEST(SimLoop, PostsRunInTheirOrder) {
  SimWorld world(1);
  std::string said;
  for (const char c : {'a', 'b', 'c'}) world.loop().post([&said, c] { said += c; });
  world.run_for(0s);
  EXPECT_EQ(said, "abc");
}

TEST(SimLoop, RunServesUntilStop) {
  SimWorld world(1);
  int ticks = 0;
  std::function<void()> tick = [&] {
    if (++ticks == 3) world.loop().stop();
    world.loop().call_after(1ms, tick);
  };
  tick();
  world.loop().run();
  EXPECT_EQ(ticks, 3);
}

TEST(SimLoop, BackgroundTakesAsLongAsItsDiskCalls) {
  SimWorld world(1);
  world.disk_policy().per_sync = 2s;
  const Nanos start = world.clock().steady();
  Nanos ended{};
  world.loop().background(
      [&] {
        auto file = *world.disk().create("/a");
        EXPECT_TRUE(file->append(as_bytes("x")));
        EXPECT_TRUE(file->sync());
      },
      [&] { ended = world.clock().steady(); });
  world.run_for(10s);
  EXPECT_GE(ended - start, 2s);
  EXPECT_LE(ended - start, 2100ms);
}

TEST(SimLoop, FourBackgroundJobsRunAtOnceAndTheFifthWaits) {
  SimWorld world(1);
  world.disk_policy().per_sync = 1s;
  const Nanos start = world.clock().steady();
  std::vector<Nanos> ended;
  for (int i = 0; i < 5; ++i) {
    world.loop().background([&] { EXPECT_TRUE(world.disk().sync_dir("/")); },
                            [&] { ended.push_back(world.clock().steady() - start); });
  }
  world.run_for(10s);
  ASSERT_EQ(ended.size(), 5U);
  EXPECT_LE(ended[3], 1500ms);
  EXPECT_GE(ended[4], 2s);
}

TEST(SimWorld, AfterARestartNothingOfBeforeRuns) {
  SimWorld world(1);
  bool ran = false;
  world.loop().call_after(1ms, [&] { ran = true; });
  world.loop().background([&] { ran = true; }, [&] { ran = true; });
  world.restart();
  bool runs_again = false;
  world.loop().call_after(1ms, [&] { runs_again = true; });
  world.run_for(1s);
  EXPECT_FALSE(ran);
  EXPECT_TRUE(runs_again);
}

TEST(SimWorld, ARespawnedProcessFindsTheDiskAsItLeftIt) {
  SimWorld world(1);
  auto file = *world.disk().create("/a");
  ASSERT_TRUE(file->append(as_bytes("unsynced")));
  world.respawn();
  EXPECT_FALSE(file->append(as_bytes("x")));
  EXPECT_EQ(as_text(*world::read_file(world.disk(), "/a", 100)), "unsynced");
}

TEST(SimWorld, TheWallClockJumpsAndTheSteadyOneDoesNot) {
  SimWorld world(1);
  const Nanos steady = world.clock().steady();
  const Nanos wall = world.clock().wall();
  world.node().jump_wall(-1h);
  EXPECT_EQ(world.clock().steady(), steady);
  EXPECT_EQ(world.clock().wall(), wall - 1h);
}

TEST(SimWorld, ChanceReplaysFromTheSeed) {
  SimWorld first(1);
  SimWorld again(1);
  SimWorld other(2);
  const std::uint64_t drawn = first.random().next();
  EXPECT_EQ(again.random().next(), drawn);
  EXPECT_NE(other.random().next(), drawn);
}

TEST(SimWorld, KillAfterEndsTheProcessBeforeThatCallAndTheMachineGoesOn) {
  SimWorld world(1);
  world.kill_after(1);
  EXPECT_TRUE(world.disk().make_dirs("/a"));
  EXPECT_FALSE(world.disk().make_dirs("/b"));
  EXPECT_FALSE(world.alive());
  EXPECT_TRUE(world.node().up());
  EXPECT_TRUE(world.node().disk().exists("/a"));
}

}  // namespace
}  // namespace holdfast::sim
