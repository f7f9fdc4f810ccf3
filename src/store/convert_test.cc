// S30 for what is converted: the old or the new, whatever write was the last.
#include "store/convert.h"

#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/tensor_file.h"

namespace holdfast::store {
namespace {

class ConvertTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  ConvertTest() {
    const Status made = disk().make_dirs("/m");
    EXPECT_TRUE(made);
    const Status synced = disk().sync_dir("/");
    EXPECT_TRUE(synced);
    large_.resize(5'000'003);
    for (std::size_t i = 0; i < large_.size(); ++i) large_[i] = static_cast<std::byte>(i * 31 + i / 253);
    const std::vector<TensorData> tensors = {{"large", "U8", {large_.size()}, large_},
                                             {"small", "F32", {2, 2}, BytesView(large_).first(16)},
                                             {"none", "BF16", {0, 7}, {}}};
    const std::map<std::string, std::string> metadata = {{"k", "v"}, {"holdfast.aliases", R"({"second":"small"})"}};
    const auto saved = save_tensor_file(disk(), "/m/in", tensors, metadata, 1);
    EXPECT_TRUE(saved) << saved.error().message();
  }
  world::Disk& disk() { return world_.disk(); }

  Status convert_to(const std::string& path, WrittenKind kind) {
    auto archive = open_archive(disk(), "/m/in", std::nullopt);
    if (!archive) return std::move(archive).error();
    return convert(**archive, disk(), path, kind, {});
  }

  void expect_whole(const std::string& path) {
    const auto archive = open_archive(disk(), path, std::nullopt);
    ASSERT_TRUE(archive) << archive.error().message();
    const auto loaded = load_archive(**archive, std::nullopt, 1);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->tied, (std::map<std::string, std::string>{{"second", "small"}}));
    ASSERT_EQ(loaded->tensors.size(), 3u);
    for (const TensorInfo& tensor : loaded->tensors) {
      const BytesView bytes = loaded->block.all().subspan(tensor.begin, tensor.end - tensor.begin);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), large_.begin())) << tensor.name;
    }
  }

  sim::SimWorld world_{GetParam()};
  Bytes large_;
};

TEST_P(ConvertTest, IsReadAsWhatItWas) {
  for (const auto& [path, kind] :
       {std::pair("/m/out", WrittenKind::Safetensors), std::pair("/m/ckpt", WrittenKind::Dcp)}) {
    const Status done = convert_to(path, kind);
    ASSERT_TRUE(done) << done.error().message();
    expect_whole(path);
  }
  const auto file = verify_tensor_file(disk(), "/m/out", 1);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->header.metadata.at("k"), "v");
  EXPECT_TRUE(file->checksums);
}

TEST_P(ConvertTest, ACrashLeavesNoFolderThatLoadsOrAWholeOne) {
  for (int calls = 0; calls < 60; ++calls) {
    SCOPED_TRACE("crash after " + std::to_string(calls));
    const std::string path = "/m/ckpt" + std::to_string(calls);
    world_.crash_after(calls);
    const bool acknowledged = static_cast<bool>(convert_to(path, WrittenKind::Dcp));
    world_.restart();
    if (acknowledged || disk().exists(path + "/.metadata")) expect_whole(path);
    if (acknowledged) return;
  }
  FAIL() << "60 calls were not enough";
}

TEST_P(ConvertTest, AFolderWithACheckpointIsLeftAlone) {
  ASSERT_TRUE(convert_to("/m/ckpt", WrittenKind::Dcp));
  const Status again = convert_to("/m/ckpt", WrittenKind::Dcp);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::Conflict);
  expect_whole("/m/ckpt");
}

TEST_P(ConvertTest, ADamagedInputLeavesNothing) {
  Bytes bytes = *world::read_file(disk(), "/m/in", 1U << 30U);
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(write_file_atomically(disk(), "/m/in", bytes));
  EXPECT_FALSE(convert_to("/m/out", WrittenKind::Safetensors));
  EXPECT_FALSE(convert_to("/m/ckpt", WrittenKind::Dcp));
  EXPECT_FALSE(disk().exists("/m/out"));
  EXPECT_EQ(*disk().list("/m/ckpt"), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Seeds, ConvertTest, testing::Range<std::uint64_t>(1, 4));

}  // namespace
}  // namespace holdfast::store
