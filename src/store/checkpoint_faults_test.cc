// A checkpoint that is interrupted, at any call: by the death of its writer, a full disk, a failing one.
#include <gtest/gtest.h>

#include "sim/actor.h"
#include "sim/sim_world.h"
#include "store/test_checkpoints.h"

namespace holdfast::store {
namespace {

constexpr CheckpointId kOld{.epoch = 1, .step = 10};
constexpr CheckpointId kNew{.epoch = 1, .step = 20};
constexpr const char* kDir = "/ckpt";

/// "" where the newest checkpoint loads and is one of `allowed`, byte for byte.
std::string wrong_newest(world::Disk& disk, std::initializer_list<CheckpointId> allowed) {
  const auto survey = CheckpointDir(disk, kDir).newest();
  if (!survey) return survey.error().message();
  if (!survey->newest) return "there is none";
  const auto loaded = load_checkpoint(disk, survey->newest->dir);
  if (!loaded) return loaded.error().message();
  if (std::find(allowed.begin(), allowed.end(), survey->newest->id) == allowed.end()) {
    return "the newest is " + checkpoint_name(survey->newest->id);
  }
  return TestCheckpoint(survey->newest->id).difference(*loaded);
}

Status write_new(world::Disk& disk) {
  CheckpointDir dir(disk, kDir);
  return TestCheckpoint(kNew).write_and_commit(disk, dir);
}

void write_old(world::Disk& disk) {
  CheckpointDir dir(disk, kDir);
  const Status done = TestCheckpoint(kOld).write_and_commit(disk, dir);
  ASSERT_TRUE(done) << done.error().message();
}

/// Interrupts the writing of kNew before call 0, 1, 2, ... until it gets through; `interrupted(world, calls)` says
/// whether it was acknowledged.
template <typename Interrupted>
int sweep(const Interrupted& interrupted, bool power_fails) {
  for (std::uint64_t calls = 0;; ++calls) {
    SCOPED_TRACE("interrupted after " + std::to_string(calls) + " calls");
    sim::SimWorld world(calls);
    write_old(world.disk());
    const bool acknowledged = interrupted(world, calls);
    if (power_fails) world.restart();
    EXPECT_EQ(acknowledged ? wrong_newest(world.disk(), {kNew}) : wrong_newest(world.disk(), {kOld, kNew}), "");
    EXPECT_TRUE(CheckpointDir(world.disk(), kDir).fence(2));
    EXPECT_TRUE(CheckpointDir(world.disk(), kDir).remove_partial());
    EXPECT_EQ(wrong_newest(world.disk(), {kOld, kNew}), "");
    if (acknowledged || testing::Test::HasFailure()) return static_cast<int>(calls);
  }
}

class Idle : public sim::Actor {};

TEST(CheckpointFaults, Behaviour13AWriterKilledAtAnyCallLeavesTheOldOrTheNewCheckpoint) {
  const int calls = sweep(
      [](sim::SimWorld& world, std::uint64_t before) {
        world.cluster().add_program("writer", [](auto&, auto&) { return std::make_unique<Idle>(); });
        world::SpawnSpec spec;
        spec.argv = {"writer"};
        sim::SimWorld& writer = world.cluster().spawn(world.node(), spec);
        writer.kill_after(before);
        return static_cast<bool>(write_new(writer.disk()));
      },
      /*power_fails=*/false);
  EXPECT_GT(calls, 20);
}

TEST(CheckpointFaults, Behaviour13AMachineThatDiesAtAnyCallLeavesTheOldOrTheNewCheckpoint) {
  const int calls = sweep(
      [](sim::SimWorld& world, std::uint64_t before) {
        world.crash_after(before);
        return static_cast<bool>(write_new(world.disk()));
      },
      /*power_fails=*/true);
  EXPECT_GT(calls, 20);
}

TEST(CheckpointFaults, Behaviour13TheNextTryAfterADeadWriterSucceeds) {
  for (std::uint64_t calls = 0; calls < 30; ++calls) {
    sim::SimWorld world(calls);
    write_old(world.disk());
    world.crash_after(calls);
    (void)write_new(world.disk());
    world.restart();
    CheckpointDir dir(world.disk(), kDir);
    ASSERT_TRUE(dir.fence(2));
    const Status done = TestCheckpoint({.epoch = 2, .step = 20}).write_and_commit(world.disk(), dir);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(wrong_newest(world.disk(), {{.epoch = 2, .step = 20}}), "");
  }
}

TEST(CheckpointFaults, Behaviour14AFullDiskFailsTheSaveKeepsTheOldOneAndTheRetrySucceeds) {
  sim::SimWorld measured(1);
  write_old(measured.disk());
  const std::uint64_t before = measured.node().disk().bytes_used();
  ASSERT_TRUE(write_new(measured.disk()));
  const std::uint64_t after = measured.node().disk().bytes_used();
  ASSERT_LT(before, after);
  for (std::uint64_t limit = before; limit < after; ++limit) {
    SCOPED_TRACE("room for " + std::to_string(limit - before) + " bytes");
    sim::SimWorld world(limit);
    write_old(world.disk());
    world.disk_policy().bytes_max = limit;
    const Status full = write_new(world.disk());
    ASSERT_FALSE(full);
    ASSERT_EQ(full.error().code(), Code::Unavailable);
    ASSERT_EQ(wrong_newest(world.disk(), {kOld}), "");
    ASSERT_TRUE(CheckpointDir(world.disk(), kDir).discard(kNew));
    ASSERT_EQ(world.node().disk().bytes_used(), before) << "giving up must free the space";
    world.disk_policy().bytes_max = UINT64_MAX;
    ASSERT_TRUE(write_new(world.disk()));
    ASSERT_EQ(wrong_newest(world.disk(), {kNew}), "");
  }
}

TEST(CheckpointFaults, Behaviour14AFailingDiskNeverMakesAnAcknowledgedCheckpointUnreadable) {
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::SimWorld world(seed);
    write_old(world.disk());
    sim::DiskPolicy& policy = world.disk_policy();
    policy.read_error = policy.write_error = policy.sync_error = policy.name_error = 0.03;
    const bool acknowledged = static_cast<bool>(write_new(world.disk()));
    // A retry of the same save, as the caller would.
    const bool retried = acknowledged || static_cast<bool>(write_new(world.disk()));
    policy.read_error = policy.write_error = policy.sync_error = policy.name_error = 0;
    world.restart();
    ASSERT_EQ(retried ? wrong_newest(world.disk(), {kNew}) : wrong_newest(world.disk(), {kOld, kNew}), "");
    if (!acknowledged) ++failed;
  }
  EXPECT_GT(failed, 30) << "the disk was meant to fail often";
}

}  // namespace
}  // namespace holdfast::store
