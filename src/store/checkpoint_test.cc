#include "store/checkpoint.h"

#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/test_checkpoints.h"

namespace holdfast::store {
namespace {

constexpr CheckpointId kId{.epoch = 3, .step = 50};
constexpr std::uint64_t kReadMax = std::uint64_t{1} << 20U;

/// A committed checkpoint of two shards, and the bytes of its files.
class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    CheckpointDir dir(world_.disk(), "/ckpt");
    ASSERT_TRUE(expected_.write_and_commit(world_.disk(), dir));
    path_ = dir.checkpoint_path(kId);
    const auto names = world_.disk().list(path_);
    ASSERT_TRUE(names);
    for (const std::string& name : *names)
      files_[name] = *world::read_file(world_.disk(), path_ + "/" + name, kReadMax);
    ASSERT_EQ(files_.size(), 3U);
  }
  void overwrite(const std::string& name, BytesView bytes) {
    auto file = world_.disk().create(path_ + "/" + name);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append(bytes));
  }
  /// Verifies and loads; both must agree.
  bool loads() {
    const bool verified = static_cast<bool>(verify_checkpoint(world_.disk(), path_));
    const bool loaded = static_cast<bool>(load_checkpoint(world_.disk(), path_));
    EXPECT_EQ(verified, loaded);
    return loaded;
  }

  sim::SimWorld world_{1};
  TestCheckpoint expected_{kId};
  std::string path_;
  std::map<std::string, Bytes> files_;
};

TEST_F(Checkpoint, LoadsStructureAndTensorsAsTheyWereSaved) {
  auto loaded = load_checkpoint(world_.disk(), path_);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(expected_.difference(*loaded), "");
  const LoadedCheckpoint moved = *std::move(loaded);
  EXPECT_EQ(expected_.difference(moved), "");
}

TEST_F(Checkpoint, NoFlippedBitOfAnyFileEverLoads) {
  for (const auto& [name, bytes] : files_) {
    for (std::size_t place = 0; place < bytes.size(); ++place) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        Bytes flipped = bytes;
        flipped[place] ^= static_cast<std::byte>(1U << bit);
        overwrite(name, flipped);
        ASSERT_FALSE(loads()) << name << " byte " << place << " bit " << bit;
      }
    }
    overwrite(name, bytes);
  }
  EXPECT_TRUE(loads());
}

TEST_F(Checkpoint, NoTruncationOfAnyFileEverLoads) {
  for (const auto& [name, bytes] : files_) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      overwrite(name, BytesView(bytes).first(size));
      ASSERT_FALSE(loads()) << name << " cut to " << size;
    }
    overwrite(name, bytes);
  }
  EXPECT_TRUE(loads());
}

TEST_F(Checkpoint, NoByteAddedToAnyFileEverLoads) {
  for (const auto& [name, bytes] : files_) {
    Bytes longer = bytes;
    longer.push_back(std::byte{' '});
    overwrite(name, longer);
    EXPECT_FALSE(loads()) << name;
    overwrite(name, bytes);
  }
}

TEST_F(Checkpoint, WithoutAnyOneOfItsFilesDoesNotLoadAndSaysWhich) {
  for (const auto& [name, bytes] : files_) {
    ASSERT_TRUE(world_.disk().remove(path_ + "/" + name));
    const auto loaded = load_checkpoint(world_.disk(), path_);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), Code::NotFound);
    EXPECT_NE(loaded.error().message().find(path_ + "/" + name), std::string::npos) << loaded.error().message();
    overwrite(name, bytes);
  }
}

TEST_F(Checkpoint, ShardsThatChangedPlacesDoNotLoad) {
  overwrite("shard-0-of-2.safetensors", files_["shard-1-of-2.safetensors"]);
  overwrite("shard-1-of-2.safetensors", files_["shard-0-of-2.safetensors"]);
  EXPECT_FALSE(loads());
}

TEST_F(Checkpoint, AShardOfAnotherStepDoesNotLoad) {
  CheckpointDir dir(world_.disk(), "/ckpt");
  const TestCheckpoint other({.epoch = 3, .step = 60});
  ASSERT_TRUE(other.write_and_commit(world_.disk(), dir));
  const std::string shard = "shard-0-of-2.safetensors";
  overwrite(shard, *world::read_file(world_.disk(), dir.checkpoint_path(other.id()) + "/" + shard, kReadMax));
  EXPECT_FALSE(loads());
}

TEST_F(Checkpoint, UnderTheNameOfAnotherDoesNotLoad) {
  const std::string renamed = "/ckpt/step-000000000099-epoch-3";
  ASSERT_TRUE(world_.disk().rename(path_, renamed));
  const auto loaded = load_checkpoint(world_.disk(), renamed);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::Corrupt);
  EXPECT_NE(loaded.error().message().find("belongs to step-000000000050-epoch-3"), std::string::npos);
}

TEST_F(Checkpoint, CopiedToAPlainNameLoads) {
  ASSERT_TRUE(world_.disk().rename(path_, "/ckpt/the good one"));
  const auto loaded = load_checkpoint(world_.disk(), "/ckpt/the good one");
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(expected_.difference(*loaded), "");
}

TEST_F(Checkpoint, OneNameInTwoShardsIsRefused) {
  CheckpointDir dir(world_.disk(), "/ckpt");
  const Bytes bytes = test_bytes(1, 4);
  const std::vector<TensorData> tensors = {{"w", "U8", {4}, bytes}};
  Manifest manifest{.run_id = "r", .step = 60, .epoch = 3, .world_size = 2, .structure = "{}", .shards = {}};
  for (Rank writer = 0; writer < 2; ++writer) {
    const auto record = write_shard(world_.disk(), dir.checkpoint_path({3, 60}), writer, 2, tensors);
    ASSERT_TRUE(record);
    manifest.shards.push_back(*record);
  }
  ASSERT_TRUE(dir.commit(manifest));
  const auto loaded = load_checkpoint(world_.disk(), dir.checkpoint_path({3, 60}));
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message().find("tensor w is in two shards"), std::string::npos);
}

TEST_F(Checkpoint, ThatCantBeReadIsToldFromOneThatIsDamaged) {
  world_.disk_policy().read_error = 1;
  const auto loaded = load_checkpoint(world_.disk(), path_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::Unavailable);
}

}  // namespace
}  // namespace holdfast::store
