#include "store/model.h"

#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/test_tensors.h"

namespace holdfast::store {
namespace {

class ModelTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk().make_dirs("/m")); }
  world::Disk& disk() { return world_.disk(); }
  void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(world::write_file_atomically(disk(), path, as_bytes(text)));
  }
  void save(const std::string& path, const TestTensors& tensors) {
    ASSERT_TRUE(save_tensor_file(disk(), path, tensors.list(), {}, 1));
  }
  std::string why_not(const std::string& path) {
    const auto model = Model::open(disk(), path, 1);
    return model ? "" : model.error().message();
  }
  void expect_refused(const std::string& path, const std::vector<std::string>& says) {
    const std::string why = why_not(path);
    for (const std::string& part : says) EXPECT_NE(why.find(part), std::string::npos) << why << "\nlacks: " << part;
  }
  sim::SimWorld world_{1};
};

TEST_F(ModelTest, IsAFileAFolderOrAnIndex) {
  const TestTensors tensors = test_tensors(1);
  save("/m/x.safetensors", tensors);
  save("/m/odd name", tensors);
  ASSERT_TRUE(tensors.save(ModelPlace(disk()), "/m/several.safetensors", 80));
  ASSERT_TRUE(tensors.save(ModelPlace(disk()), "/m/one", 8000));
  for (const char* path : {"/m/x.safetensors", "/m/odd name", "/m/several.safetensors", "/m/one",
                           "/m/several.safetensors/model.safetensors.index.json", "/m/several.safetensors/"}) {
    const auto model = Model::open(disk(), path, 1);
    ASSERT_TRUE(model) << path << ": " << model.error().message();
    EXPECT_EQ(tensors.difference(*model), "") << path;
    EXPECT_TRUE(model->verify(1));
  }
}

TEST_F(ModelTest, TheFileCountsWhereThereIsAnIndexToo) {
  ASSERT_TRUE(test_tensors(1).save(ModelPlace(disk()), "/m", 80));
  save("/m/model.safetensors", test_tensors(2));
  EXPECT_EQ(test_tensors(2).difference(*Model::open(disk(), "/m", 1)), "");
}

TEST_F(ModelTest, WhatIsNotThereIsSaid) {
  EXPECT_EQ(Model::open(disk(), "/none", 1).error().code(), Code::NotFound);
  EXPECT_EQ(Model::open(disk(), "/none.index.json", 1).error().code(), Code::NotFound);
  EXPECT_EQ(Model::open(disk(), "/none.safetensors", 1).error().code(), Code::NotFound);
  expect_refused("/m", {"/m: holds neither model.safetensors nor model.safetensors.index.json"});
}

TEST_F(ModelTest, AMissingFileIsTheModelsFault) {
  ASSERT_TRUE(test_tensors(1).save(ModelPlace(disk()), "/m", 80));
  ASSERT_TRUE(disk().remove("/m/model-00002-of-00003.safetensors"));
  expect_refused("/m", {"/m/model.safetensors.index.json", "/m/model-00002-of-00003.safetensors", "fetch or write"});
  EXPECT_EQ(Model::open(disk(), "/m", 1).error().code(), Code::BadInput);
}

TEST_F(ModelTest, EveryTensorOfTheIndexIsInItsFileAndInNoOther) {
  save("/m/a.safetensors", TestTensors().add("x", "U8", {3}, 3).add("only_a", "U8", {1}, 1));
  save("/m/b.safetensors", TestTensors().add("y", "U8", {3}, 3));
  save("/m/c.safetensors", TestTensors().add("x", "U8", {3}, 3));
  put("/m/good.index.json", R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  EXPECT_EQ(why_not("/m/good.index.json"), "");
  EXPECT_TRUE(Model::open(disk(), "/m/good.index.json", 1)->find("only_a")) << "as others load it";
  put("/m/elsewhere.index.json", R"({"weight_map": {"x": "a.safetensors", "only_a": "b.safetensors"}})");
  expect_refused("/m/elsewhere.index.json", {"only_a is not in b.safetensors but in a.safetensors"});
  put("/m/nowhere.index.json", R"({"weight_map": {"x": "a.safetensors", "z": "b.safetensors"}})");
  expect_refused("/m/nowhere.index.json", {"z is not in b.safetensors but in none of the files"});
  put("/m/twice.index.json", R"({"weight_map": {"x": "a.safetensors", "only_c": "c.safetensors"}})");
  expect_refused("/m/twice.index.json", {"x is both in a.safetensors and in c.safetensors", "/m/twice.index.json"});
}

TEST_F(ModelTest, ADamagedByteIsFoundInItsFile) {
  const TestTensors tensors = test_tensors(1);
  ASSERT_TRUE(tensors.save(ModelPlace(disk()), "/m", 80));
  const std::string path = "/m/model-00002-of-00003.safetensors";
  const auto size = (*disk().open(path))->size();
  ASSERT_TRUE(world_.flip_byte(path, size - 1));
  const auto model = Model::open(disk(), "/m", 1);
  ASSERT_TRUE(model) << "its header is whole";
  const Status bad = model->verify(1);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), Code::Corrupt);
  EXPECT_NE(bad.error().message().find(path), std::string::npos) << bad.error().message();
}

TEST_F(ModelTest, OpenFilesStayTheSameWhenTheModelIsReplaced) {
  ASSERT_TRUE(test_tensors(1).save(ModelPlace(disk()), "/m", 80));
  const auto model = Model::open(disk(), "/m", 1);
  ASSERT_TRUE(test_tensors(2).save(ModelPlace(disk()), "/m", 80));
  EXPECT_EQ(test_tensors(1).difference(*model), "");
}

}  // namespace
}  // namespace holdfast::store
