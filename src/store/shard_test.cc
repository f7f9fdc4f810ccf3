#include "store/shard.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/sim_world.h"
#include "store/dtype.h"
#include "store/test_checkpoints.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kReadMax = std::uint64_t{1} << 30U;

std::vector<std::string> names_in(world::Disk& disk, const std::string& dir) {
  auto names = disk.list(dir);
  return names ? *names : std::vector<std::string>{};
}

TensorData bytes_tensor(std::string name, BytesView bytes) { return {std::move(name), "U8", {bytes.size()}, bytes}; }

TEST(ShardFileName, CountsWritersFromZero) { EXPECT_EQ(shard_file_name(0, 4), "shard-0-of-4.safetensors"); }

TEST(WriteShard, WritesATensorFileAndSaysHowToKnowItAgain) {
  sim::SimWorld world(1);
  const Bytes wide = test_bytes(1, 8), narrow = test_bytes(2, 3);
  const std::vector<TensorData> tensors = {{"n", "U8", {3}, narrow}, {"w", "F32", {2}, wide}};
  const auto record = write_shard(world.disk(), "/ckpt", 0, 1, tensors, {{"format", "pt"}});
  ASSERT_TRUE(record) << record.error().message();
  const auto file = read_tensor_file(world.disk(), "/ckpt/shard-0-of-1.safetensors");
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->header.tensors.size(), 2U);
  EXPECT_EQ(file->header.metadata.at("format"), "pt");
  EXPECT_EQ(record->file, "shard-0-of-1.safetensors");
  EXPECT_EQ(record->bytes, file->header.file_bytes());
  EXPECT_EQ(record->header_crc, file->header_crc);
}

TEST(WriteShard, LeavesOnlyTheFinishedFile) {
  sim::SimWorld world(1);
  ASSERT_TRUE(write_shard(world.disk(), "/a/b", 1, 4, {}));
  EXPECT_EQ(names_in(world.disk(), "/a/b"), (std::vector<std::string>{"shard-1-of-4.safetensors"}));
}

TEST(WriteShard, RefusesBytesThatDoNotFitTheShapeAndWritesNothing) {
  sim::SimWorld world(1);
  const Bytes bytes(7);
  const std::vector<TensorData> tensors = {{"w", "F32", {2}, bytes}};
  const auto record = write_shard(world.disk(), "/ckpt", 0, 1, tensors);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code(), Code::BadInput);
  EXPECT_EQ(record.error().message(),
            "checkpoint: save /ckpt/shard-0-of-1.safetensors: header: tensor w of shape [2] and F32 needs 8 bytes, but "
            "7 were given");
  EXPECT_TRUE(names_in(world.disk(), "/ckpt").empty());
}

TEST(WriteShard, OnAFullDiskGivesItsSpaceBackAndWorksLater) {
  sim::SimWorld world(1);
  const Bytes bytes = test_bytes(1, 3 * kChecksumChunkBytes);
  const std::vector<TensorData> tensors = {bytes_tensor("w", bytes)};
  world.disk_policy().bytes_max = 2 * kChecksumChunkBytes;
  const auto record = write_shard(world.disk(), "/ckpt", 0, 1, tensors);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code(), Code::Unavailable);
  EXPECT_EQ(world.node().disk().bytes_used(), 0U);
  EXPECT_TRUE(names_in(world.disk(), "/ckpt").empty());
  world.disk_policy().bytes_max = UINT64_MAX;
  EXPECT_TRUE(write_shard(world.disk(), "/ckpt", 0, 1, tensors));
}

TEST(LoadShard, AShardWithoutTensorsLoadsEmpty) {
  sim::SimWorld world(1);
  const auto record = write_shard(world.disk(), "/ckpt", 0, 1, {});
  ASSERT_TRUE(record);
  const auto shard = load_shard(world.disk(), "/ckpt", *record);
  ASSERT_TRUE(shard) << shard.error().message();
  EXPECT_TRUE(shard->tensors.empty());
}

RC_GTEST_PROP(Shard, LoadsWhatWasWritten, ()) {
  sim::SimWorld world(*rc::gen::arbitrary<std::uint64_t>());
  const auto count = *rc::gen::inRange<std::size_t>(0, 8);
  std::vector<Bytes> contents;
  std::vector<TensorData> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    const auto dtype = *rc::gen::element<std::string>("F32", "BF16", "U8", "F64", "BOOL");
    const auto large = *rc::gen::inRange(0, 4) == 0;
    const auto elements = *rc::gen::inRange<std::uint64_t>(0, large ? 400'000 : 40);
    contents.push_back(test_bytes(i, elements * *dtype_bits(dtype) / 8));
    tensors.push_back({"t" + std::to_string(i), dtype, {elements}, {}});
  }
  for (std::size_t i = 0; i < count; ++i) tensors[i].bytes = contents[i];
  const auto record = write_shard(world.disk(), "/ckpt", 2, 3, tensors, {{"k", "v"}});
  RC_ASSERT(record.has_value());
  RC_ASSERT(verify_shard(world.disk(), "/ckpt", *record).has_value());
  const auto shard = load_shard(world.disk(), "/ckpt", *record);
  RC_ASSERT(shard.has_value());
  RC_ASSERT(shard->tensors.size() == count);
  RC_ASSERT(shard->file.header.metadata.at("k") == "v");
  for (const TensorInfo& info : shard->tensors) {
    const std::size_t i = static_cast<std::size_t>(std::stoul(info.name.substr(1)));
    RC_ASSERT(info.dtype == tensors[i].dtype);
    RC_ASSERT(info.shape == tensors[i].shape);
    RC_ASSERT(std::ranges::equal(shard->bytes(info), contents[i]));
  }
}

class DamagedShard : public testing::Test {
 protected:
  void SetUp() override {
    bytes_ = test_bytes(1, 2 * kChecksumChunkBytes);
    const std::vector<TensorData> tensors = {bytes_tensor("w", bytes_)};
    auto record = write_shard(world_.disk(), "/ckpt", 0, 1, tensors);
    ASSERT_TRUE(record);
    record_ = *std::move(record);
  }
  /// The same error from both ways of reading.
  Error refused() {
    const auto verified = verify_shard(world_.disk(), "/ckpt", record_);
    const auto loaded = load_shard(world_.disk(), "/ckpt", record_);
    EXPECT_FALSE(verified);
    EXPECT_FALSE(loaded);
    if (verified || loaded) return {Code::Internal, ""};
    EXPECT_EQ(verified.error().code(), loaded.error().code());
    return verified.error();
  }

  sim::SimWorld world_{1};
  Bytes bytes_;
  ShardRecord record_;
  std::string path_ = "/ckpt/shard-0-of-1.safetensors";
};

TEST_F(DamagedShard, S21AFlippedByteIsToldWithFileAndChunk) {
  ASSERT_TRUE(world_.flip_byte(path_, kChecksumChunkBytes + 17));
  const Error error = refused();
  EXPECT_EQ(error.code(), Code::Corrupt);
  EXPECT_NE(error.message().find(path_ + ": data: read: tensor w: chunk 0 (bytes 4096 to 1052672) does not match"),
            std::string::npos)
      << error.message();
}

TEST_F(DamagedShard, AFlippedByteInTheLengthOfTheHeaderAllocatesNothingAndIsToldAsDamage) {
  ASSERT_TRUE(world_.flip_byte(path_, 6));
  EXPECT_EQ(refused().code(), Code::Corrupt);
}

TEST_F(DamagedShard, ACutFileIsToldWithBothSizes) {
  ASSERT_TRUE(world_.node().disk().truncate(path_, 100));
  const Error error = refused();
  EXPECT_EQ(error.code(), Code::Corrupt);
  EXPECT_NE(error.message().find("has 100 bytes, its manifest says " + std::to_string(record_.bytes)),
            std::string::npos);
}

TEST_F(DamagedShard, AMissingFileIsToldByName) {
  ASSERT_TRUE(world_.disk().remove(path_));
  const Error error = refused();
  EXPECT_EQ(error.code(), Code::NotFound);
  EXPECT_NE(error.message().find(path_), std::string::npos);
}

TEST_F(DamagedShard, AWholeFileThatIsNotTheOneMeantIsRefused) {
  const Bytes other = test_bytes(2, 2 * kChecksumChunkBytes);
  const std::vector<TensorData> tensors = {bytes_tensor("w", other)};
  const auto record = write_shard(world_.disk(), "/ckpt", 0, 1, tensors);
  ASSERT_TRUE(record);
  ASSERT_EQ(record->bytes, record_.bytes);
  const Error error = refused();
  EXPECT_EQ(error.code(), Code::Corrupt);
  EXPECT_NE(error.message().find("not the one that its manifest names"), std::string::npos) << error.message();
}

TEST_F(DamagedShard, AFileOfAnotherProgramWithTheRightSizeIsRefused) {
  ASSERT_TRUE(world::write_file_atomically(world_.disk(), path_, Bytes(record_.bytes)));
  EXPECT_EQ(refused().code(), Code::Corrupt);
}

}  // namespace
}  // namespace holdfast::store
