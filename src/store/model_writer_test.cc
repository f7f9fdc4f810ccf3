#include "store/model_writer.h"

#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/test_tensors.h"

namespace holdfast::store {
namespace {

constexpr const char* kFolder = "/models/m";

class ModelWriterTest : public testing::Test {
 protected:
  world::Disk& disk() { return world_.disk(); }
  ModelPlace place() { return ModelPlace(disk()); }
  std::vector<std::string> names() { return *disk().list(kFolder); }
  std::string difference(const TestTensors& tensors) {
    const auto model = Model::open(disk(), kFolder, 1);
    return model ? tensors.difference(*model) : model.error().message();
  }
  sim::SimWorld world_{1};
};

using Names = std::vector<std::string>;

TEST_F(ModelWriterTest, WritesTheUsualNamesAndAnIndex) {
  const TestTensors tensors = test_tensors(1);
  const Status saved = tensors.save(place(), kFolder, 80, {{"tied", "w"}});
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(names(), (Names{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                            "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
  EXPECT_EQ(difference(tensors), "");
  const auto model = Model::open(disk(), std::string(kFolder) + "/" + kModelIndex, 1);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->find("tied")->info, model->find("w")->info);
  EXPECT_TRUE(model->has_checksums());
  EXPECT_EQ(model->index_name(), kModelIndex);
  EXPECT_EQ(parse_sharded_index(model->index_text())->total_size, 60u + 7 + 8 + 120);
  EXPECT_FALSE(parse_sharded_index(model->index_text())->weight_map.contains("tied"));
}

TEST_F(ModelWriterTest, AModelThatFitsIsOneFile) {
  const TestTensors tensors = test_tensors(1);
  ASSERT_TRUE(tensors.save(place(), kFolder, 1000));
  EXPECT_EQ(names(), Names{"model.safetensors"});
  EXPECT_EQ(difference(tensors), "");
}

TEST_F(ModelWriterTest, ASaveLeavesNothingOfTheModelBeforeIt) {
  for (const std::uint64_t before : {50, 80, 1000}) {
    for (const std::uint64_t after : {50, 80, 1000}) {
      ASSERT_TRUE(test_tensors(1).save(place(), kFolder, before));
      ASSERT_TRUE(test_tensors(2).save(place(), kFolder, after));
      EXPECT_EQ(difference(test_tensors(2)), "") << before << " then " << after;
      const auto model = Model::open(disk(), kFolder, 1);
      EXPECT_EQ(names().size(), model->files().size() + (model->index_path().empty() ? 0 : 1));
    }
  }
}

TEST_F(ModelWriterTest, FilesOfOthersStay) {
  ASSERT_TRUE(disk().make_dirs(kFolder));
  ASSERT_TRUE(world::write_file_atomically(disk(), std::string(kFolder) + "/config.json", as_bytes("{}")));
  ASSERT_TRUE(world::write_file_atomically(disk(), std::string(kFolder) + "/consolidated.safetensors", as_bytes("x")));
  ASSERT_TRUE(test_tensors(1).save(place(), kFolder, 80));
  ASSERT_TRUE(test_tensors(1).save(place(), kFolder, 1000));
  EXPECT_EQ(names(), (Names{"config.json", "consolidated.safetensors", "model.safetensors"}));
}

TEST_F(ModelWriterTest, WhatIsNotCommittedIsRemovedAndTheOldModelStays) {
  ASSERT_TRUE(test_tensors(1).save(place(), kFolder, 80));
  const Names before = names();
  TestTensors bad = test_tensors(2);
  bad.add(std::string("z\0z", 3), "U8", {90}, 90);
  const Status done = bad.save(place(), kFolder, 80);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::BadInput);
  TestTensors twice;
  for (int i = 0; i < 4; ++i) twice.add("w", "U8", {90}, 90);
  EXPECT_FALSE(twice.save(place(), kFolder, 80));
  EXPECT_EQ(names(), before);
  EXPECT_EQ(difference(test_tensors(1)), "");
}

TEST_F(ModelWriterTest, AFullDiskLosesNothing) {
  ASSERT_TRUE(test_tensors(1).save(place(), kFolder, 80));
  const Names before = names();
  world_.node().disk().policy.bytes_max = world_.node().disk().bytes_used() + 1000;
  const Status done = test_tensors(2, 30).save(place(), kFolder, 80);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Unavailable);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(difference(test_tensors(1)), "");
}

TEST_F(ModelWriterTest, AnOldIndexThatCannotBeReadIsNotWrittenOver) {
  ASSERT_TRUE(disk().make_dirs(kFolder));
  const std::string index = std::string(kFolder) + "/" + kModelIndex;
  ASSERT_TRUE(world::write_file_atomically(disk(), index, as_bytes("{")));
  const Status done = test_tensors(1).save(place(), kFolder, 80);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find(index), std::string::npos);
  EXPECT_NE(done.error().message().find("remove it"), std::string::npos);
}

/// Where nothing can be removed, as over a plain FileTarget.
TEST_F(ModelWriterTest, RefusesToLeaveAFileThatReadersPrefer) {
  const ModelPlace no_removal(static_cast<world::FileSource&>(disk()), static_cast<world::FileTarget&>(disk()));
  ASSERT_TRUE(disk().make_dirs(kFolder));
  ASSERT_TRUE(test_tensors(1).save(no_removal, kFolder, 80));
  EXPECT_FALSE(test_tensors(2).save(no_removal, kFolder, 1000));
  ASSERT_TRUE(test_tensors(2).save(no_removal, kFolder, 80)) << "other names, and the old ones stay";
  EXPECT_EQ(difference(test_tensors(2)), "");
}

// S30
TEST_F(ModelWriterTest, AMachineThatDiesAtAnyCallLeavesTheOldOrTheNewModel) {
  for (const auto& [before, after] : {std::pair(80, 80), {80, 50}, {1000, 80}, {80, 1000}}) {
    const TestTensors old_model = test_tensors(1);
    const TestTensors new_model = test_tensors(2, 4);
    bool acknowledged = false;
    for (std::uint64_t calls = 0; !acknowledged; ++calls) {
      SCOPED_TRACE(std::to_string(before) + " then " + std::to_string(after) + ", after " + std::to_string(calls));
      sim::SimWorld world(calls * 7 + 1);
      const ModelPlace place(world.disk());
      ASSERT_TRUE(old_model.save(place, kFolder, static_cast<std::uint64_t>(before)));
      world.crash_after(calls);
      const Status saved = new_model.save(place, kFolder, static_cast<std::uint64_t>(after));
      acknowledged = static_cast<bool>(saved);
      ASSERT_LT(calls, 1000u) << saved.error().message();
      world.restart();
      const auto model = Model::open(world.disk(), kFolder, 1);
      ASSERT_TRUE(model) << model.error().message();
      const std::string difference = new_model.difference(*model);
      EXPECT_TRUE(difference.empty() || !acknowledged) << difference;
      EXPECT_TRUE(difference.empty() || old_model.difference(*model).empty()) << difference;
      // And the next save mends whatever was left.
      const Status again = new_model.save(ModelPlace(world.disk()), kFolder, 80);
      ASSERT_TRUE(again) << again.error().message();
      EXPECT_EQ(new_model.difference(*Model::open(world.disk(), kFolder, 1)), "");
    }
  }
}

TEST_F(ModelWriterTest, AFirstSaveThatIsAcknowledgedOutlivesACrash) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    sim::SimWorld world(seed);
    ASSERT_TRUE(test_tensors(1).save(ModelPlace(world.disk()), "/a/b/c", 80));
    world.restart();
    const auto model = Model::open(world.disk(), "/a/b/c", 1);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(test_tensors(1).difference(*model), "");
  }
}

}  // namespace
}  // namespace holdfast::store
