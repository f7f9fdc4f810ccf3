// The checkpoint protocol under crashes, on every seed and before every disk call: what was acknowledged is not lost,
// what loads is exact, what a crash leaves is whole or not there, and an epoch that is over commits nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "sim/seeds.h"
#include "sim/sim_world.h"
#include "tests/sim/checkpoint_history.h"
#include "tests/sim/planted_bugs.h"

namespace holdfast::store {
namespace {

using Wrap = std::function<std::unique_ptr<world::Disk>(world::Disk&)>;

template <typename Wrapped>
std::unique_ptr<world::Disk> wrapped_in(world::Disk& disk) {
  return std::make_unique<Wrapped>(disk);
}

std::uint64_t calls_without_a_crash(std::uint64_t seed, const Wrap& wrap) {
  sim::SimWorld world(seed);
  CheckpointHistory().run(*wrap(world.disk()), seed);
  return world.disk_calls();
}

/// The promises broken where the power fails after `calls` disk calls of the plan of `seed`.
std::vector<std::string> broken_by_a_crash(std::uint64_t seed, std::uint64_t calls, const Wrap& wrap) {
  sim::SimWorld world(seed);
  CheckpointHistory history;
  world.crash_after(calls);
  history.run(*wrap(world.disk()), seed);
  world.restart();
  history.judge(world.disk());
  history.go_on(*wrap(world.disk()));
  world.restart();
  history.judge(world.disk());
  return history.broken_promises();
}

/// The first broken promise of any seed below `seeds` and any crash; "" where all hold.
std::string first_broken(std::uint64_t seeds, const Wrap& wrap) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const std::uint64_t last = calls_without_a_crash(seed, wrap);
    for (std::uint64_t calls = 0; calls <= last; ++calls) {
      const std::vector<std::string> broken = broken_by_a_crash(seed, calls, wrap);
      if (!broken.empty()) return broken.front();
    }
  }
  return "";
}

class CheckpointCrash : public testing::TestWithParam<std::uint64_t> {};

TEST_P(CheckpointCrash, BeforeAnyDiskCallBreaksNoPromise) {
  const Wrap plain = wrapped_in<WrappedDisk>;
  const std::uint64_t last = calls_without_a_crash(GetParam(), plain);
  // The first seeds crash before every call, the others before every eighth, each seed at other ones.
  const std::uint64_t stride = GetParam() < 64 ? 1 : 8;
  for (std::uint64_t calls = GetParam() % stride; calls <= last; calls += stride) {
    ASSERT_THAT(broken_by_a_crash(GetParam(), calls, plain), testing::IsEmpty())
        << "seed " << GetParam() << ", crash after " << calls << " disk calls; replay: sim_scenarios_test "
        << "--gtest_filter=Seeds/CheckpointCrash.BeforeAnyDiskCallBreaksNoPromise/*, with HOLDFAST_SIM_SEED="
        << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CheckpointCrash, testing::ValuesIn(sim::seeds(1000)));

/// Damage on top of crashes: the disk changes a byte of the newest checkpoint.
TEST(CheckpointDamage, CostsAtMostTheCheckpointItHits) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::SimWorld world(seed);
    sim::SimRandom random(seed);
    CheckpointDir dir(world.disk(), "/ckpt");
    const TestCheckpoint older({1, 10}), newer({1, 20});
    ASSERT_TRUE(older.write_and_commit(world.disk(), dir));
    ASSERT_TRUE(newer.write_and_commit(world.disk(), dir));
    const std::string newest = dir.checkpoint_path(newer.id());
    const auto names = world.disk().list(newest);
    ASSERT_TRUE(names);
    const std::string file = newest + "/" + (*names)[random.below(names->size())];
    const auto bytes = world::read_file(world.disk(), file, 1 << 20);
    ASSERT_TRUE(bytes);
    ASSERT_TRUE(world.flip_byte(file, random.below(bytes->size())));
    world.restart();
    const auto survey = CheckpointDir(world.disk(), "/ckpt").newest();
    ASSERT_TRUE(survey);
    ASSERT_TRUE(survey->newest);
    EXPECT_EQ(survey->newest->id, older.id());
    ASSERT_EQ(survey->passed_over.size(), 1U);
    EXPECT_EQ(survey->passed_over[0].checkpoint, checkpoint_name(newer.id()));
    const auto loaded = load_checkpoint(world.disk(), survey->newest->dir);
    ASSERT_TRUE(loaded);
    EXPECT_EQ(older.difference(*loaded), "");
  }
}

// ---- tests of the tests: the same judge must see each planted bug, and nothing where there is none

constexpr std::uint64_t kSeedsToCatch = 20;

TEST(CheckpointJudge, HasNothingToSayOfTheProtocolAsItIs) {
  EXPECT_EQ(first_broken(kSeedsToCatch, wrapped_in<WrappedDisk>), "");
}

TEST(CheckpointJudge, CatchesAMissingSyncOfFiles) {
  EXPECT_THAT(first_broken(kSeedsToCatch, wrapped_in<UnsyncedFilesDisk>),
              testing::AnyOf(testing::HasSubstr("lost"), testing::HasSubstr("manifest without its bytes")));
}

TEST(CheckpointJudge, CatchesAMissingSyncOfNames) {
  EXPECT_THAT(first_broken(kSeedsToCatch, wrapped_in<UnsyncedNamesDisk>),
              testing::AnyOf(testing::HasSubstr("lost"), testing::HasSubstr("manifest without its bytes")));
}

TEST(CheckpointJudge, CatchesAManifestThatIsDurableBeforeItsShards) {
  EXPECT_THAT(first_broken(kSeedsToCatch, wrapped_in<EarlyManifestDisk>),
              testing::HasSubstr("manifest without its bytes"));
}

TEST(CheckpointJudge, CatchesACommitAcceptedFromAStaleEpoch) {
  EXPECT_THAT(first_broken(kSeedsToCatch, wrapped_in<FencelessDisk>), testing::HasSubstr("stale"));
}

}  // namespace
}  // namespace holdfast::store
