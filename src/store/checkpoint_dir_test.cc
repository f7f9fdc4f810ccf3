#include "store/checkpoint_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/test_checkpoints.h"

namespace holdfast::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointDirTest : public testing::Test {
 protected:
  world::Disk& disk() { return world_.disk(); }
  /// A fresh object, as after a restart of the program.
  CheckpointDir dir(std::size_t keep = 2) { return {disk(), "/runs/ckpt", {.keep = keep}}; }

  Status commit(CheckpointDir& to, Epoch epoch, Step step) {
    return TestCheckpoint({epoch, step}).write_and_commit(disk(), to);
  }
  void commit_all(CheckpointDir& to, std::initializer_list<CheckpointId> ids) {
    for (const CheckpointId id : ids) {
      const Status done = commit(to, id.epoch, id.step);
      ASSERT_TRUE(done) << done.error().message();
    }
  }
  void write_only(Epoch epoch, Step step) { ASSERT_TRUE(TestCheckpoint({epoch, step}).write_shards(disk(), dir())); }
  CheckpointSurvey survey() {
    auto found = dir().newest();
    EXPECT_TRUE(found);
    return found ? *std::move(found) : CheckpointSurvey{};
  }
  std::optional<CheckpointId> newest() {
    const auto found = survey().newest;
    return found ? std::optional(found->id) : std::nullopt;
  }
  void damage(Epoch epoch, Step step, const std::string& file = "shard-0-of-2.safetensors") {
    ASSERT_TRUE(world_.flip_byte(dir().checkpoint_path({epoch, step}) + "/" + file, 70));
  }
  void put_foreign(const std::string& path) {
    auto file = disk().create(path);
    ASSERT_TRUE(file);
  }
  std::vector<std::string> names() { return *disk().list("/runs/ckpt"); }

  sim::SimWorld world_{1};
};

using Commit = CheckpointDirTest;
using Fence = CheckpointDirTest;
using Newest = CheckpointDirTest;
using Retention = CheckpointDirTest;
using RemovePartial = CheckpointDirTest;
using Discard = CheckpointDirTest;

TEST_F(Commit, MakesACheckpointTheNewestAndItLoads) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 3, 50));
  EXPECT_THAT(names(), ElementsAre("step-000000000050-epoch-3"));
  EXPECT_THAT(*disk().list("/runs/ckpt/step-000000000050-epoch-3"),
              ElementsAre("manifest.json", "shard-0-of-2.safetensors", "shard-1-of-2.safetensors"));
  const auto found = survey();
  ASSERT_TRUE(found.newest);
  EXPECT_EQ(found.newest->id, (CheckpointId{3, 50}));
  EXPECT_THAT(found.passed_over, IsEmpty());
  const auto loaded = load_checkpoint(disk(), found.newest->dir);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(TestCheckpoint({3, 50}).difference(*loaded), "");
}

TEST_F(Commit, OutlivesACrashRightAfter) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 3, 50));
  world_.restart();
  EXPECT_EQ(newest(), (CheckpointId{3, 50}));
}

TEST_F(Commit, OfAnEpochOlderThanOneThatHasWrittenIsRefused) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 4, 50));
  for (const Step step : {Step{50}, Step{60}, Step{40}}) {
    const Status stale = commit(to, 3, step);
    ASSERT_FALSE(stale);
    EXPECT_EQ(stale.error().code(), Code::Conflict);
    EXPECT_THAT(stale.error().message(), HasSubstr("epoch 4 has taken over"));
  }
  EXPECT_EQ(newest(), (CheckpointId{4, 50}));
}

TEST_F(Commit, OfANewerEpochMayReturnToAnOlderStep) {
  auto to = dir();
  commit_all(to, {{3, 50}, {4, 45}});
  EXPECT_EQ(newest(), (CheckpointId{4, 45}));
}

TEST_F(Commit, WithAShardMissingIsRefusedAndTheOldOneStays) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 3, 50));
  const auto manifest = TestCheckpoint({3, 60}).write_shards(disk(), to);
  ASSERT_TRUE(manifest);
  ASSERT_TRUE(disk().remove(to.checkpoint_path({3, 60}) + "/shard-1-of-2.safetensors"));
  const Status done = to.commit(*manifest);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::NotFound);
  EXPECT_THAT(done.error().message(), HasSubstr("shard-1-of-2.safetensors"));
  EXPECT_EQ(newest(), (CheckpointId{3, 50}));
}

TEST_F(Commit, WithAShardOfAnotherSizeIsRefused) {
  auto to = dir();
  auto manifest = TestCheckpoint({3, 60}).write_shards(disk(), to);
  ASSERT_TRUE(manifest);
  ASSERT_TRUE(world_.node().disk().truncate(to.checkpoint_path({3, 60}) + "/shard-1-of-2.safetensors", 9));
  const Status done = to.commit(*manifest);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Corrupt);
  EXPECT_EQ(newest(), std::nullopt);
}

TEST_F(Commit, OfTheSameManifestAgainIsFineAndOfAnotherIsNot) {
  auto to = dir();
  auto manifest = TestCheckpoint({3, 50}).write_shards(disk(), to);
  ASSERT_TRUE(manifest);
  ASSERT_TRUE(to.commit(*manifest));
  EXPECT_TRUE(to.commit(*manifest));
  manifest->structure = "{}";
  const Status other = to.commit(*manifest);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::Conflict);
}

TEST_F(Commit, RefusesAManifestThatCouldNotBeRead) {
  auto to = dir();
  auto manifest = TestCheckpoint({3, 50}).write_shards(disk(), to);
  ASSERT_TRUE(manifest);
  manifest->step = kStepMax + 1;
  EXPECT_FALSE(to.commit(*manifest));
  manifest->step = 50;
  manifest->structure = "\xff";
  EXPECT_FALSE(to.commit(*manifest));
  EXPECT_EQ(newest(), std::nullopt);
}

TEST_F(Commit, TwelveHundredInARowLeaveTwoAndBoundedNames) {
  auto to = dir();
  for (int i = 1; i <= 1200; ++i) {
    ASSERT_TRUE(commit(to, static_cast<Epoch>(i / 100), Step{i} * 1'000'000));
    ASSERT_EQ(to.last_retention().trouble, "");
  }
  EXPECT_THAT(names(), ElementsAre("step-001199000000-epoch-11", "step-001200000000-epoch-12"));
  EXPECT_EQ(newest(), (CheckpointId{12, 1'200'000'000}));
}

TEST_F(Fence, RefusesCommitsOfOlderEpochsAlsoAfterACrash) {
  ASSERT_TRUE(dir().fence(3));
  world_.restart();
  auto to = dir();
  const Status stale = commit(to, 2, 50);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::Conflict);
  EXPECT_TRUE(commit(to, 3, 50));
  EXPECT_TRUE(commit(to, 4, 60));
}

TEST_F(Fence, OnlyRises) {
  auto to = dir();
  ASSERT_TRUE(to.fence(3));
  EXPECT_TRUE(to.fence(3));
  const Status lower = to.fence(2);
  ASSERT_FALSE(lower);
  EXPECT_EQ(lower.error().code(), Code::Conflict);
  EXPECT_TRUE(to.fence(4));
  EXPECT_THAT(names(), ElementsAre("fence-4"));
}

TEST_F(Fence, BelowAnEpochThatHasWrittenIsRefused) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 5, 50));
  const Status lower = to.fence(4);
  ASSERT_FALSE(lower);
  EXPECT_EQ(lower.error().code(), Code::Conflict);
}

TEST_F(Fence, HoldsWhateverBecomesOfTheFilesBytes) {
  auto to = dir();
  ASSERT_TRUE(to.fence(3));
  ASSERT_TRUE(world_.node().disk().truncate("/runs/ckpt/fence-3", 0));
  EXPECT_FALSE(commit(to, 2, 50));
}

TEST_F(Fence, TellsTheNewestEpochThatWasHere) {
  EXPECT_EQ(*dir().highest_epoch(), 0U);
  auto to = dir();
  ASSERT_TRUE(to.fence(3));
  EXPECT_EQ(*dir().highest_epoch(), 3U);
  write_only(7, 10);
  EXPECT_EQ(*dir().highest_epoch(), 7U);
}

TEST_F(Newest, OfADirectoryThatIsNotThereIsNone) {
  const auto found = survey();
  EXPECT_FALSE(found.newest);
  EXPECT_THAT(found.passed_over, IsEmpty());
}

TEST_F(Newest, PassesOverTheDamagedAndSaysWhy) {
  auto to = dir(3);
  commit_all(to, {{1, 10}, {1, 20}, {1, 30}});
  damage(1, 30);
  damage(1, 20, "manifest.json");
  const auto found = survey();
  ASSERT_TRUE(found.newest);
  EXPECT_EQ(found.newest->id, (CheckpointId{1, 10}));
  ASSERT_EQ(found.passed_over.size(), 2U);
  EXPECT_EQ(found.passed_over[0].checkpoint, "step-000000000030-epoch-1");
  EXPECT_EQ(found.passed_over[0].code, Code::Corrupt);
  EXPECT_THAT(found.passed_over[0].why, HasSubstr("shard-0-of-2.safetensors: "));
  EXPECT_EQ(found.passed_over[1].checkpoint, "step-000000000020-epoch-1");
  EXPECT_THAT(found.passed_over[1].why, HasSubstr("manifest"));
}

TEST_F(Newest, PassesOverWhatWasNeverCommitted) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 1, 10));
  write_only(1, 20);
  const auto found = survey();
  ASSERT_TRUE(found.newest);
  EXPECT_EQ(found.newest->id, (CheckpointId{1, 10}));
  ASSERT_EQ(found.passed_over.size(), 1U);
  EXPECT_EQ(found.passed_over[0].code, Code::NotFound);
  EXPECT_THAT(found.passed_over[0].why, HasSubstr("never committed"));
}

TEST_F(Newest, LeavesForeignFilesAloneAndMentionsThem) {
  auto to = dir(1);
  ASSERT_TRUE(commit(to, 1, 10));
  put_foreign("/runs/ckpt/notes.txt");
  put_foreign("/runs/ckpt/step-20");
  put_foreign("/runs/ckpt/step-000000000099-epoch-1");
  ASSERT_TRUE(commit(to, 1, 20));
  ASSERT_TRUE(to.fence(2));
  ASSERT_TRUE(to.remove_partial());
  const auto found = survey();
  EXPECT_THAT(found.foreign, ElementsAre("notes.txt", "step-20"));
  ASSERT_TRUE(found.newest);
  EXPECT_EQ(found.newest->id, (CheckpointId{1, 20}));
  EXPECT_THAT(names(),
              ElementsAre("fence-2", "notes.txt", "step-000000000020-epoch-1", "step-000000000099-epoch-1", "step-20"));
}

TEST_F(Retention, KeepsTheNewestAndRemovesTheRest) {
  auto to = dir(2);
  commit_all(to, {{1, 10}, {1, 20}, {1, 30}});
  EXPECT_THAT(names(), ElementsAre("step-000000000020-epoch-1", "step-000000000030-epoch-1"));
  EXPECT_THAT(to.last_retention().removed, ElementsAre("step-000000000010-epoch-1"));
}

TEST_F(Retention, NeverRemovesTheNewestThatVerifies) {
  auto to = dir(2);
  commit_all(to, {{1, 10}, {1, 20}});
  damage(1, 20);
  auto later = dir(1);
  const auto manifest = TestCheckpoint({1, 30}).write_shards(disk(), later);
  ASSERT_TRUE(manifest);
  damage(1, 30);
  ASSERT_TRUE(later.commit(*manifest));
  EXPECT_EQ(newest(), (CheckpointId{1, 10}));
  EXPECT_EQ(later.last_retention().damaged.size(), 2U);
  EXPECT_THAT(later.last_retention().removed, IsEmpty());
}

TEST_F(Retention, DoesNotCountTheDamagedTowardsThoseToKeep) {
  auto to = dir(4);
  commit_all(to, {{1, 10}, {1, 20}, {1, 30}});
  damage(1, 30);
  auto later = dir(2);
  ASSERT_TRUE(commit(later, 1, 40));
  EXPECT_THAT(names(),
              ElementsAre("step-000000000020-epoch-1", "step-000000000030-epoch-1", "step-000000000040-epoch-1"));
}

TEST_F(Retention, ThatFailsIsToldAndTheCommitStands) {
  auto to = dir(1);
  ASSERT_TRUE(commit(to, 1, 10));
  put_foreign(to.checkpoint_path({1, 10}) + "/my notes");
  ASSERT_TRUE(commit(to, 1, 20));
  EXPECT_THAT(to.last_retention().trouble, HasSubstr("my notes is not ours"));
  EXPECT_THAT(to.last_retention().removed, testing::IsEmpty());
  EXPECT_THAT(*disk().list(to.checkpoint_path({1, 10})), testing::Contains("my notes"));
  EXPECT_EQ(newest(), (CheckpointId{1, 20}));
}

TEST_F(RemovePartial, RemovesWhatCanNeverBeCommitted) {
  auto to = dir();
  write_only(1, 10);
  ASSERT_TRUE(to.fence(2));
  write_only(2, 5);
  ASSERT_TRUE(commit(to, 2, 20));
  write_only(2, 30);
  auto removed = to.remove_partial();
  ASSERT_TRUE(removed);
  EXPECT_THAT(names(), ElementsAre("fence-2", "step-000000000020-epoch-2", "step-000000000030-epoch-2"));
}

TEST_F(RemovePartial, NeverTouchesTheCommitted) {
  auto to = dir(5);
  commit_all(to, {{1, 10}, {1, 20}});
  ASSERT_TRUE(to.fence(2));
  const auto removed = to.remove_partial();
  ASSERT_TRUE(removed);
  EXPECT_THAT(*removed, IsEmpty());
  EXPECT_EQ(names().size(), 3U);
}

TEST_F(Discard, FreesTheSpaceOfACheckpointGivenUp) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 1, 10));
  const std::uint64_t used = world_.node().disk().bytes_used();
  write_only(1, 20);
  ASSERT_TRUE(to.discard({1, 20}));
  EXPECT_EQ(world_.node().disk().bytes_used(), used);
  EXPECT_TRUE(to.discard({1, 20}));
  EXPECT_EQ(newest(), (CheckpointId{1, 10}));
}

TEST_F(Discard, RefusesACommittedOne) {
  auto to = dir();
  ASSERT_TRUE(commit(to, 1, 10));
  const Status refused = to.discard({1, 10});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::Conflict);
  EXPECT_EQ(newest(), (CheckpointId{1, 10}));
}

}  // namespace
}  // namespace holdfast::store
