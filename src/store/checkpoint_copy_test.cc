#include "store/checkpoint_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/incremental.h"
#include "store/test_checkpoints.h"

namespace holdfast::store {
namespace {

using testing::HasSubstr;

constexpr CheckpointId kFirst{.epoch = 1, .step = 10}, kSecond{.epoch = 1, .step = 20};

class CopyCheckpoint : public testing::Test {
 protected:
  OpenCheckpoint open(CheckpointDir& dir, CheckpointId id) {
    auto opened = OpenCheckpoint::open(world_.disk(), dir.checkpoint_path(id));
    EXPECT_TRUE(opened) << opened.error().message();
    return *std::move(opened);
  }
  Status copy(CheckpointId from, CheckpointDir& to, CheckpointId id) {
    return copy_checkpoint(open(from_, from), world_.disk(), to, id, 1);
  }

  sim::SimWorld world_{1};
  CheckpointDir from_{world_.disk(), "/from", {.keep = 9}};
  CheckpointDir to_{world_.disk(), "/to"};
};

TEST_F(CopyCheckpoint, IsTheSameElsewhereByteForByte) {
  ASSERT_TRUE(TestCheckpoint(kFirst).write_and_commit(world_.disk(), from_));
  ASSERT_TRUE(copy(kFirst, to_, kFirst));
  const auto loaded = load_checkpoint(world_.disk(), to_.checkpoint_path(kFirst));
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(TestCheckpoint(kFirst).difference(*loaded), "");
  EXPECT_EQ(*from_.newest()->newest->manifest.shards.data(), *loaded->manifest().shards.data());
}

TEST_F(CopyCheckpoint, UnderANewEpochItIsTheNewestOfItsDirectory) {
  ASSERT_TRUE(TestCheckpoint(kFirst).write_and_commit(world_.disk(), from_));
  ASSERT_TRUE(TestCheckpoint(kSecond).write_and_commit(world_.disk(), from_));
  const Result<Epoch> epoch = from_.open_epoch();
  ASSERT_TRUE(epoch);
  ASSERT_TRUE(copy(kFirst, from_, {.epoch = *epoch, .step = 10}));
  const auto newest = from_.newest();
  ASSERT_TRUE(newest && newest->newest);
  EXPECT_EQ(newest->newest->id, (CheckpointId{.epoch = *epoch, .step = 10}));
}

TEST_F(CopyCheckpoint, OfAnIncrementalOneNeedsNoOther) {
  const Bytes frozen = test_bytes(1, 1000), old = test_bytes(2, 10), fresh = test_bytes(3, 10);
  KnownParts known;
  for (const auto& [id, moving] : {std::pair(kFirst, old), std::pair(kSecond, fresh)}) {
    const std::vector<TensorData> tensors = {{"frozen", "U8", {1000}, frozen}, {"moving", "U8", {10}, moving}};
    auto shard = write_incremental_shard(world_.disk(), from_.checkpoint_path(id), 0, 1, tensors, {}, known);
    ASSERT_TRUE(shard) << shard.error().message();
    ASSERT_TRUE(from_.commit({"r", id.step, id.epoch, 1, "{}", {shard->record}}));
    known = std::move(shard->known);
  }
  ASSERT_EQ(open(from_, kSecond).files().size(), 2U);
  ASSERT_TRUE(copy(kSecond, to_, kSecond));
  const OpenCheckpoint copied = open(to_, kSecond);
  EXPECT_EQ(copied.files().size(), 1U);
  Bytes got_frozen(1000), got_moving(10);
  const WantedBox boxes[] = {{"frozen", {{0}, {1000}}, got_frozen}, {"moving", {{0}, {10}}, got_moving}};
  ASSERT_TRUE(copied.read(boxes, 1));
  EXPECT_EQ(got_frozen, frozen);
  EXPECT_EQ(got_moving, fresh);
  EXPECT_TRUE(verify_checkpoint(world_.disk(), to_.checkpoint_path(kSecond)));
}

TEST_F(CopyCheckpoint, NeverOverwritesACommittedOneAndCopiesNothingDamaged) {
  ASSERT_TRUE(TestCheckpoint(kFirst).write_and_commit(world_.disk(), from_));
  ASSERT_TRUE(copy(kFirst, to_, kFirst));
  EXPECT_EQ(copy(kFirst, to_, kFirst).error().code(), Code::Conflict);
  const OpenCheckpoint opened = open(from_, kFirst);
  const std::string file = from_.checkpoint_path(kFirst) + "/shard-1-of-2.safetensors";
  ASSERT_TRUE(world_.flip_byte(file, (*world_.disk().open(file))->size() - 1));
  CheckpointDir other(world_.disk(), "/other");
  const Status damaged = copy_checkpoint(opened, world_.disk(), other, kFirst, 1);
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message(), HasSubstr("shard-1-of-2"));
  EXPECT_FALSE(other.newest()->newest);
}

}  // namespace
}  // namespace holdfast::store
