#include "store/open_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sim/sim_world.h"
#include "store/checkpoint_dir.h"

namespace holdfast::store {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kRows = 3000, kColumns = 500;

/// A tensor of 6 MB whose elements are their places, its rows in two shards.
class TwoShards : public testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i < kRows * kColumns; ++i) values_.push_back(i);
    Manifest manifest{.run_id = "r", .step = 1, .epoch = 1, .world_size = 2, .structure = "{}", .shards = {}};
    write(manifest, 0, 0, 1000);
    write(manifest, 1, 1000, 2000);
    ASSERT_TRUE(dir_.commit(manifest));
    path_ = dir_.checkpoint_path({1, 1});
  }
  void write(Manifest& manifest, Rank writer, std::uint64_t first, std::uint64_t rows) {
    const std::string name = slice_name("w", {first, 0});
    const BytesView bytes = std::as_bytes(std::span(values_).subspan(first * kColumns, rows * kColumns));
    const std::vector<TensorData> tensors = {{name, "U32", {rows, kColumns}, bytes}};
    const Slices slices = {{name, {"w", {kRows, kColumns}, {first, 0}}}};
    const auto record = write_shard(world_.disk(), dir_.checkpoint_path({1, 1}), writer, 2, tensors,
                                    {{kSlicesKey, *format_slices(slices)}});
    ASSERT_TRUE(record) << record.error().message();
    manifest.shards.push_back(*record);
  }
  /// The box's elements, and what it cost.
  std::vector<std::uint32_t> read(const Box& box, ReadTally* tally = nullptr) {
    const auto open = OpenCheckpoint::open(world_.disk(), path_);
    EXPECT_TRUE(open) << open.error().message();
    std::vector<std::uint32_t> got(element_count(box.shape));
    const WantedBox wanted[] = {{"w", box, std::as_writable_bytes(std::span(got))}};
    const auto done = open->read(wanted, 1);
    EXPECT_TRUE(done) << done.error().message();
    if (done && tally != nullptr) *tally = *done;
    return got;
  }

  sim::SimWorld world_{1};
  CheckpointDir dir_{world_.disk(), "/ckpt"};
  std::string path_;
  std::vector<std::uint32_t> values_;
};

TEST_F(TwoShards, S28RowsAcrossShardsReadOnlyTheirBytes) {
  ReadTally tally;
  const auto got = read({{500, 0}, {1700, kColumns}}, &tally);
  EXPECT_TRUE(std::ranges::equal(got, std::span(values_).subspan(500 * kColumns, 1700 * kColumns)));
  EXPECT_EQ(tally.bytes, 1700 * kColumns * 4);
  EXPECT_GT(tally.checked, tally.bytes / 2);
  EXPECT_LT(tally.checked, tally.bytes);
}

TEST_F(TwoShards, ColumnsAreRight) {
  const auto got = read({{0, 250}, {kRows, 125}});
  for (std::uint64_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], (i / 125) * kColumns + 250 + i % 125);
  }
}

TEST_F(TwoShards, ADamagedChunkThatIsReadWholeIsToldNotHandedOut) {
  const auto open = OpenCheckpoint::open(world_.disk(), path_);
  ASSERT_TRUE(open);
  ASSERT_TRUE(world_.flip_byte(path_ + "/shard-1-of-2.safetensors", (std::uint64_t{2} << 20U) + 5));
  std::vector<std::uint32_t> got(kRows * kColumns);
  const WantedBox wanted[] = {{"w", {{0, 0}, {kRows, kColumns}}, std::as_writable_bytes(std::span(got))}};
  const auto done = open->read(wanted, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Corrupt);
  EXPECT_THAT(done.error().message(), HasSubstr("shard-1-of-2.safetensors"));
}

TEST_F(TwoShards, ADamagedHeaderDoesNotOpen) {
  ASSERT_TRUE(world_.flip_byte(path_ + "/shard-1-of-2.safetensors", 40));
  const auto open = OpenCheckpoint::open(world_.disk(), path_);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), Code::Corrupt);
}

TEST_F(TwoShards, WhatIsNotThereIsToldByName) {
  const auto open = OpenCheckpoint::open(world_.disk(), path_);
  ASSERT_TRUE(open);
  std::vector<std::byte> room(4);
  const WantedBox other[] = {{"v", {{0, 0}, {1, 1}}, room}};
  const auto no_tensor = open->read(other, 1);
  ASSERT_FALSE(no_tensor);
  EXPECT_THAT(no_tensor.error().message(), HasSubstr("tensor v: the checkpoint holds no such tensor"));
  const WantedBox beyond[] = {{"w", {{kRows, 0}, {1, 1}}, room}};
  const auto no_box = open->read(beyond, 1);
  ASSERT_FALSE(no_box);
  EXPECT_THAT(no_box.error().message(), HasSubstr("does not lie within"));
  const WantedBox narrow[] = {{"w", {{0, 0}, {1, 2}}, room}};
  EXPECT_FALSE(open->read(narrow, 1));
}

}  // namespace
}  // namespace holdfast::store
