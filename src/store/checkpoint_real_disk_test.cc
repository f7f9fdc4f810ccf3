// The same code on real files: what the simulated disk can't vouch for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "store/test_checkpoints.h"
#include "world/real_world.h"

namespace holdfast::store {
namespace {

class CheckpointOnRealDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "holdfast ckpt XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    root_ = made;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<world::World> world_ = world::make_real_world();
  std::string root_;
};

TEST_F(CheckpointOnRealDisk, IsCommittedFoundLoadedAndRetired) {
  world::Disk& disk = world_->disk();
  CheckpointDir dir(disk, root_ + "/a/b");
  ASSERT_TRUE(dir.fence(2));
  for (const Step step : {Step{10}, Step{20}, Step{30}}) {
    const Status done = TestCheckpoint({2, step}, 2, 3 << 20).write_and_commit(disk, dir);
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_EQ(dir.last_retention().trouble, "");
  }
  EXPECT_THAT(*disk.list(root_ + "/a/b"),
              testing::ElementsAre("fence-2", "step-000000000020-epoch-2", "step-000000000030-epoch-2"));
  const auto survey = CheckpointDir(disk, root_ + "/a/b/").newest();
  ASSERT_TRUE(survey);
  ASSERT_TRUE(survey->newest);
  const auto loaded = load_checkpoint(disk, survey->newest->dir);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(TestCheckpoint({2, 30}, 2, 3 << 20).difference(*loaded), "");
}

TEST_F(CheckpointOnRealDisk, S36FilesHaveTheModeThatTheUmaskLeaves) {
  CheckpointDir dir(world_->disk(), root_);
  const mode_t before = umask(022);
  const Status done = TestCheckpoint({1, 10}).write_and_commit(world_->disk(), dir);
  umask(before);
  ASSERT_TRUE(done) << done.error().message();
  for (const char* name : {"shard-0-of-2.safetensors", "manifest.json"}) {
    struct stat status{};
    ASSERT_EQ(stat((dir.checkpoint_path({1, 10}) + "/" + name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0644U) << name;
  }
}

TEST_F(CheckpointOnRealDisk, AFileWhereADirectoryShouldBeIsPassedOver) {
  world::Disk& disk = world_->disk();
  CheckpointDir dir(disk, root_);
  ASSERT_TRUE(TestCheckpoint({1, 10}).write_and_commit(disk, dir));
  ASSERT_TRUE(world::write_file_atomically(disk, dir.checkpoint_path({1, 20}), as_bytes("not a directory")));
  ASSERT_TRUE(TestCheckpoint({1, 30}).write_and_commit(disk, dir));
  ASSERT_TRUE(disk.remove(dir.checkpoint_path({1, 30}) + "/manifest.json"));
  const auto survey = dir.newest();
  ASSERT_TRUE(survey);
  ASSERT_TRUE(survey->newest);
  EXPECT_EQ(survey->newest->id, (CheckpointId{1, 10}));
  EXPECT_EQ(survey->passed_over.size(), 2U);
}

}  // namespace
}  // namespace holdfast::store
