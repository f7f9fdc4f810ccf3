#include "store/incremental.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "sim/sim_world.h"
#include "store/checkpoint_dir.h"

namespace holdfast::store {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// A state of a frozen tensor of three parts and a small one that changes.
class Incremental : public testing::Test {
 protected:
  Incremental() : frozen_(40 * kMiB), moving_(16) {
    for (std::size_t i = 0; i < frozen_.size(); i += 4096) frozen_[i] = static_cast<std::byte>(i / 4096);
  }

  std::string path(Step step) const { return dir_.checkpoint_path({.epoch = 1, .step = step}); }
  /// Commits the state as it is now. The bytes of the shard.
  std::uint64_t save(Step step) {
    moving_[0] = static_cast<std::byte>(step);
    const std::vector<TensorData> tensors = {{"frozen", "U8", {40, kMiB}, frozen_},
                                             {"moving", "U8", {moving_.size()}, moving_}};
    auto shard = write_incremental_shard(world_.disk(), path(step), 0, 1, tensors, {}, known_);
    EXPECT_TRUE(shard) << shard.error().message();
    Manifest manifest{.run_id = "r", .step = step, .epoch = 1, .world_size = 1, .structure = "{}", .shards = {}};
    manifest.shards.push_back(shard->record);
    const Status done = dir_.commit(manifest);
    EXPECT_TRUE(done) << done.error().message();
    EXPECT_EQ(dir_.last_retention().trouble, "");
    known_ = std::move(shard->known);
    return shard->record.bytes;
  }
  /// "" where the newest checkpoint is that of `step`, every byte of it.
  std::string wrong(Step step) {
    const auto survey = dir_.newest();
    if (!survey) return survey.error().message();
    if (!survey->newest) return "none";
    if (survey->newest->id.step != step) return "another step";
    const auto open = OpenCheckpoint::open(world_.disk(), survey->newest->dir);
    if (!open) return open.error().message();
    Bytes frozen(frozen_.size()), moving(moving_.size());
    const WantedBox boxes[] = {{"frozen", {{0, 0}, {40, kMiB}}, frozen}, {"moving", {{0}, {moving.size()}}, moving}};
    const auto read = open->read(boxes, 1);
    if (!read) return read.error().message();
    if (moving != moving_) return "other bytes in moving";
    return frozen == frozen_ ? "" : "other bytes in frozen";
  }

  sim::SimWorld world_{1};
  CheckpointDir dir_{world_.disk(), "/ckpt", {.keep = 1}};
  KnownParts known_;
  Bytes frozen_, moving_;
};

TEST_F(Incremental, WritesOnlyWhatChanged) {
  EXPECT_GT(save(1), 40 * kMiB);
  EXPECT_LT(save(2), kMiB);
  EXPECT_EQ(wrong(2), "");
  frozen_[17 * kMiB] ^= std::byte{1};  // in the second part of three
  const std::uint64_t bytes = save(3);
  EXPECT_GT(bytes, 16 * kMiB);
  EXPECT_LT(bytes, 17 * kMiB);
  EXPECT_EQ(wrong(3), "");
}

TEST_F(Incremental, RetentionKeepsFilesThatANewerCheckpointNeedsAndNoOthers) {
  save(1);
  save(2);
  save(3);
  EXPECT_FALSE(world_.disk().exists(path(1) + "/manifest.json"));
  EXPECT_TRUE(world_.disk().exists(path(1) + "/shard-0-of-1.safetensors"));
  EXPECT_FALSE(world_.disk().exists(path(2)));
  EXPECT_EQ(wrong(3), "");
  for (std::byte& byte : frozen_) byte ^= std::byte{1};
  save(4);
  EXPECT_FALSE(world_.disk().exists(path(1))) << "nothing needs it any more";
  EXPECT_EQ(wrong(4), "");
}

TEST_F(Incremental, AFileOfWhichLessThanHalfIsCurrentIsLeftBehind) {
  save(1);
  for (std::uint64_t i = 0; i < 32 * kMiB; i += 4096) frozen_[i] ^= std::byte{1};
  EXPECT_GT(save(2), 40 * kMiB) << "the last part of 8 MiB is written too";
  EXPECT_FALSE(world_.disk().exists(path(1)));
  EXPECT_EQ(wrong(2), "");
}

TEST_F(Incremental, ADamagedKeptFileMakesTheCheckpointsThatNeedItFail) {
  save(1);
  save(2);
  ASSERT_TRUE(world_.flip_byte(path(1) + "/shard-0-of-1.safetensors", 30 * kMiB));
  const auto verified = verify_checkpoint(world_.disk(), path(2));
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code(), Code::Corrupt);
  EXPECT_THAT(verified.error().message(), HasSubstr("step-000000000001-epoch-1/shard-0-of-1.safetensors"));
}

TEST_F(Incremental, AnotherProcessGoesOnFromWhatTheCheckpointTells) {
  save(1);
  save(2);
  const auto open = OpenCheckpoint::open(world_.disk(), path(2));
  ASSERT_TRUE(open) << open.error().message();
  const auto known = KnownParts::of(*open);
  ASSERT_TRUE(known) << known.error().message();
  EXPECT_EQ(known->parts.size(), 4U);
  known_ = *known;
  EXPECT_LT(save(3), kMiB);
  EXPECT_EQ(wrong(3), "");
}

TEST_F(Incremental, AManifestThatDoesNotNameAKeptFileIsDamaged) {
  save(1);
  save(2);
  const std::string file = path(2) + "/manifest.json";
  Manifest manifest = *manifest_from_text(as_text(*world::read_file(world_.disk(), file, kMiB)));
  manifest.shards[0].kept.clear();
  ASSERT_TRUE(world::write_file_atomically(world_.disk(), file, as_bytes(*manifest_to_text(manifest))));
  const auto open = OpenCheckpoint::open(world_.disk(), path(2));
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), Code::Corrupt);
}

}  // namespace
}  // namespace holdfast::store
