#include "store/model_copy.h"

#include <gtest/gtest.h>

#include "sim/sim_world.h"
#include "store/test_tensors.h"

namespace holdfast::store {
namespace {

/// Over several chunks, none of whose edges is a tensor's.
TestTensors large(unsigned seed) {
  TestTensors tensors(seed);
  tensors.add("a", "U8", {700'000}, 700'000).add("b", "I16", {750'000}, 1'500'000).add("c", "U8", {900'001}, 900'001);
  for (int i = 0; i < 300; ++i) tensors.add("small" + std::to_string(i), "F32", {9}, 36);
  return tensors;
}

class ModelCopyTest : public testing::Test {
 protected:
  world::Disk& disk() { return world_.disk(); }
  ModelPlace place() { return ModelPlace(disk()); }
  Model open(const std::string& path) { return *Model::open(disk(), path, 1); }
  Bytes content(const std::string& path) { return *world::read_file(disk(), path, 1U << 30U); }
  std::string difference(const TestTensors& tensors, const std::string& path) {
    const auto model = Model::open(disk(), path, 1);
    return model ? tensors.difference(*model) : model.error().message();
  }
  sim::SimWorld world_{1};
};

TEST_F(ModelCopyTest, ACopyIsTheSameByteForByte) {
  ASSERT_TRUE(large(1).save(place(), "/from", 1'000'000));
  const Status done = copy_model(open("/from"), place(), "/to", 1);
  ASSERT_TRUE(done) << done.error().message();
  const std::vector<std::string> names = *disk().list("/to");
  ASSERT_EQ(names, *disk().list("/from"));
  for (const std::string& name : names) EXPECT_EQ(content("/to/" + name), content("/from/" + name)) << name;
}

TEST_F(ModelCopyTest, WhatIsDamagedIsNotCopied) {
  ASSERT_TRUE(large(1).save(place(), "/from", 1'000'000));
  const std::string last = open("/from").files().back().name;
  ASSERT_TRUE(world_.flip_byte("/from/" + last, (*disk().open("/from/" + last))->size() / 2));
  const Status done = copy_model(open("/from"), place(), "/to", 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Corrupt);
  EXPECT_NE(done.error().message().find(last), std::string::npos);
  EXPECT_TRUE(disk().list("/to")->empty());
}

TEST_F(ModelCopyTest, AModelThatIsThereIsNotMixedWithTheCopy) {
  ASSERT_TRUE(test_tensors(1).save(place(), "/several", 80));
  ASSERT_TRUE(test_tensors(2).save(place(), "/others", 80));
  ASSERT_TRUE(test_tensors(3).save(place(), "/one", 8000));
  EXPECT_FALSE(copy_model(open("/several"), place(), "/others", 1));
  EXPECT_FALSE(copy_model(open("/several"), place(), "/one", 1));
  EXPECT_FALSE(copy_model(open("/one"), place(), "/others", 1));
  EXPECT_EQ(difference(test_tensors(2), "/others"), "");
  EXPECT_EQ(difference(test_tensors(3), "/one"), "");
  ASSERT_TRUE(test_tensors(4).save(place(), "/new", 8000));
  EXPECT_TRUE(copy_model(open("/new"), place(), "/one", 1)) << "one file takes the place of one";
  EXPECT_EQ(difference(test_tensors(4), "/one"), "");
}

TEST_F(ModelCopyTest, ReshardingKeepsEveryTensorTieAndNote) {
  const TestTensors tensors = large(1);
  ASSERT_TRUE(tensors.save(place(), "/from", 1'000'000, {{"tied", "small7"}}));
  for (const Cut& cut : {Cut(FileCount{1}), Cut(FileCount{7}), Cut(FileSize{500'000}), Cut(FileSize{10'000'000})}) {
    const auto done = reshard_model(open("/from"), place(), "/to", cut, 1);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_TRUE(done->disputed.empty());
    EXPECT_EQ(difference(tensors, "/to"), "");
    const Model model = open("/to");
    EXPECT_EQ(model.files().size(), done->files.size());
    EXPECT_EQ(model.find("tied")->info->name, "small7");
    EXPECT_EQ(model.files().front().tensors.about().header.metadata.at("format"), "pt");
    EXPECT_TRUE(model.has_checksums() && model.verify(1));
  }
}

TEST_F(ModelCopyTest, JoiningWhatWasSplitGivesTheFileBack) {
  const TestTensors tensors = large(1);
  ASSERT_TRUE(tensors.save(place(), "/one", 100'000'000));
  ASSERT_TRUE(reshard_model(open("/one"), place(), "/split", FileCount{5}, 1));
  ASSERT_TRUE(reshard_model(open("/split"), place(), "/joined.safetensors", FileCount{1}, 1));
  EXPECT_EQ(content("/joined.safetensors"), content("/one/model.safetensors"));
}

TEST_F(ModelCopyTest, AModelCanBeReshardedWhereItIs) {
  ASSERT_TRUE(large(1).save(place(), "/m", 1'000'000));
  for (const std::size_t files : {3u, 3u, 1u, 2u}) {
    const auto done = reshard_model(open("/m"), place(), "/m", FileCount{files}, 1);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(difference(large(1), "/m"), "");
    EXPECT_EQ(disk().list("/m")->size(), files == 1 ? 1 : files + 1);
  }
}

TEST_F(ModelCopyTest, ADamagedModelIsNotResharded) {
  ASSERT_TRUE(large(1).save(place(), "/from", 100'000'000));
  ASSERT_TRUE(world_.flip_byte("/from/model.safetensors", 1'000'000));
  const auto done = reshard_model(open("/from"), place(), "/to", FileCount{3}, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Corrupt);
  EXPECT_TRUE(disk().list("/to")->empty());
}

TEST_F(ModelCopyTest, ManyFilesDoNotFitUnderOneName) {
  ASSERT_TRUE(test_tensors(1).save(place(), "/m", 8000));
  EXPECT_FALSE(reshard_model(open("/m"), place(), "/x.safetensors", FileCount{2}, 1));
  EXPECT_FALSE(reshard_model(open("/m"), place(), "/x", FileCount{100}, 1));
}

TEST_F(ModelCopyTest, NotesThatFilesDisagreeOnAreNamed) {
  ASSERT_TRUE(disk().make_dirs("/m"));
  TestTensors x, y;
  x.add("x", "U8", {3}, 3);
  y.add("y", "U8", {3}, 3);
  ASSERT_TRUE(save_tensor_file(disk(), "/m/a.safetensors", x.list(), {{"format", "pt"}, {"note", "1"}}, 1));
  ASSERT_TRUE(save_tensor_file(disk(), "/m/b.safetensors", y.list(), {{"format", "pt"}, {"note", "2"}}, 1));
  const std::string index = R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})";
  ASSERT_TRUE(world::write_file_atomically(disk(), "/m/model.safetensors.index.json", as_bytes(index)));
  const auto done = reshard_model(open("/m"), place(), "/to", FileCount{1}, 1);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(done->disputed, std::set<std::string>{"note"});
  EXPECT_EQ(open("/to").files().front().tensors.about().header.metadata.at("note"), "1");
}

}  // namespace
}  // namespace holdfast::store
