#include "store/shard.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/sim_world.h"
#include "store/crc32c.h"
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

TEST(WriteShard, WritesASafetensorsFileToTheLetter) {
  sim::SimWorld world(1);
  const Bytes wide = test_bytes(1, 8), narrow = test_bytes(2, 3);
  const std::vector<TensorData> tensors = {{"n", "U8", {3}, narrow}, {"w", "F32", {2}, wide}};
  const auto record = write_shard(world.disk(), "/ckpt", 0, 1, tensors, {{"format", "pt"}});
  ASSERT_TRUE(record) << record.error().message();

  std::string expected = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                         R"("n":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  expected.resize((expected.size() + 7) / 8 * 8, ' ');
  ASSERT_LT(expected.size(), 256U);
  expected.insert(0, std::string(7, '\0'));
  expected.insert(0, 1, static_cast<char>(expected.size() - 7));
  expected += as_text(wide);
  expected += as_text(narrow);
  const auto file = world::read_file(world.disk(), "/ckpt/shard-0-of-1.safetensors", kReadMax);
  ASSERT_TRUE(file);
  EXPECT_EQ(as_text(*file), expected);
  EXPECT_EQ(record->bytes, expected.size());
  EXPECT_EQ(record->chunk_crcs, (std::vector<std::uint32_t>{crc32c(as_bytes(expected))}));
}

TEST(WriteShard, SumsTheFileInChunksOfAMebibyte) {
  sim::SimWorld world(1);
  const Bytes small = test_bytes(1, 1000), large = test_bytes(2, 2 * kChunkBytes + 5);
  const std::vector<TensorData> tensors = {bytes_tensor("a", small), bytes_tensor("b", large),
                                           bytes_tensor("c", small)};
  const auto record = write_shard(world.disk(), "/ckpt", 0, 1, tensors);
  ASSERT_TRUE(record);
  const auto file = world::read_file(world.disk(), "/ckpt/" + record->file, kReadMax);
  ASSERT_TRUE(file);
  ASSERT_EQ(record->bytes, file->size());
  ASSERT_EQ(record->chunk_crcs.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t begin = i * kChunkBytes;
    EXPECT_EQ(record->chunk_crcs[i],
              crc32c(BytesView(*file).subspan(begin, std::min<std::size_t>(kChunkBytes, file->size() - begin))));
  }
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
            "write /ckpt/shard-0-of-1.safetensors: tensor w of shape [2] and F32 needs 8 bytes, but 7 were given");
  EXPECT_TRUE(names_in(world.disk(), "/ckpt").empty());
}

TEST(WriteShard, OnAFullDiskGivesItsSpaceBackAndWorksLater) {
  sim::SimWorld world(1);
  const Bytes bytes = test_bytes(1, 3 * kChunkBytes);
  const std::vector<TensorData> tensors = {bytes_tensor("w", bytes)};
  world.disk_policy().bytes_max = 2 * kChunkBytes;
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
  EXPECT_TRUE(shard->header().tensors.empty());
}

TEST(LoadShard, AlignsTheDataTo64Bytes) {
  sim::SimWorld world(1);
  const Bytes bytes = test_bytes(1, 100);
  for (const char* name : {"w", "a.longer.name", "an.even.longer.name.than.that.one"}) {
    const std::vector<TensorData> tensors = {bytes_tensor(name, bytes)};
    const auto record = write_shard(world.disk(), "/ckpt", 0, 1, tensors);
    ASSERT_TRUE(record);
    const auto shard = load_shard(world.disk(), "/ckpt", *record);
    ASSERT_TRUE(shard);
    const BytesView loaded = shard->bytes(shard->header().tensors[0]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(loaded.data()) % 64, 0U);
    EXPECT_TRUE(std::ranges::equal(loaded, bytes));
  }
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
  RC_ASSERT(shard->header().tensors.size() == count);
  RC_ASSERT(shard->header().metadata.at("k") == "v");
  for (const TensorInfo& info : shard->header().tensors) {
    const std::size_t i = static_cast<std::size_t>(std::stoul(info.name.substr(1)));
    RC_ASSERT(info.dtype == tensors[i].dtype);
    RC_ASSERT(info.shape == tensors[i].shape);
    RC_ASSERT(std::ranges::equal(shard->bytes(info), contents[i]));
  }
}

class DamagedShard : public testing::Test {
 protected:
  void SetUp() override {
    bytes_ = test_bytes(1, 2 * kChunkBytes);
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
  ASSERT_TRUE(world_.flip_byte(path_, kChunkBytes + 17));
  const Error error = refused();
  EXPECT_EQ(error.code(), Code::Corrupt);
  EXPECT_EQ(error.message(), path_ +
                                 ": chunk 1 (bytes 1048576 to 2097152) does not match its checksum; restore the "
                                 "file from a copy or resume from an older checkpoint");
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

TEST_F(DamagedShard, ARecordWithoutAChecksumForEveryChunkIsRefused) {
  record_.chunk_crcs.pop_back();
  EXPECT_EQ(refused().code(), Code::BadInput);
  record_.chunk_bytes = 0;
  EXPECT_EQ(refused().code(), Code::BadInput);
}

TEST_F(DamagedShard, BytesThatVerifyButAreNoSafetensorsAreRefusedOnLoading) {
  const std::string text = "these are thirty-two plain bytes";
  ASSERT_TRUE(world::write_file_atomically(world_.disk(), path_, as_bytes(text)));
  record_.bytes = text.size();
  record_.chunk_crcs = {crc32c(as_bytes(text))};
  EXPECT_TRUE(verify_shard(world_.disk(), "/ckpt", record_));
  const auto loaded = load_shard(world_.disk(), "/ckpt", record_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::BadInput);
}

}  // namespace
}  // namespace holdfast::store
