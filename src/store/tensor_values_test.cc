#include "store/tensor_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "sim/sim_world.h"
#include "store/test_tensors.h"

namespace holdfast::store {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class TensorValuesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(world_.disk().make_dirs("/m")); }

  /// A model with the one tensor "t".
  Model model(const std::vector<float>& values, const std::string& dtype = "F32") {
    const std::string path = "/m/" + std::to_string(++count_) + ".safetensors";
    const BytesView bytes = std::as_bytes(std::span(values));
    const std::uint64_t elements = values.size() / (dtype == "C64" ? 2 : 1);
    const std::vector<TensorData> one = {{"t", dtype, {elements}, bytes}};
    EXPECT_TRUE(save_tensor_file(world_.disk(), path, one, {}, 1));
    return *Model::open(world_.disk(), path, 1);
  }
  TensorDifference difference(const Model& a, const Model& b, const DiffPolicy& policy = {}) {
    return *compare(*a.find("t"), *b.find("t"), policy, 1);
  }

  sim::SimWorld world_{1};
  int count_ = 0;
};

TEST_F(TensorValuesTest, MeasuresWhatIsFiniteAndCountsTheRest) {
  const Model one = model({1, -3, kNan, kInfinity, -kInfinity, 5});
  const auto found = measure(*one.find("t"), 3, 1);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->elements, 6u);
  EXPECT_EQ(found->nan, 1u);
  EXPECT_EQ(found->infinite, 2u);
  EXPECT_EQ(found->min, -3);
  EXPECT_EQ(found->max, 5);
  EXPECT_EQ(found->mean, 1);
  EXPECT_EQ(found->first, (std::vector<std::string>{"1", "-3", "nan"}));
}

TEST_F(TensorValuesTest, AnEmptyTensorHasNoRange) {
  const Model one = model({});
  const auto found = measure(*one.find("t"), 3, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->elements, 0u);
  EXPECT_FALSE(found->min || found->max || found->mean);
}

TEST_F(TensorValuesTest, ComplexOnesAreMeasuredByMagnitude) {
  const Model one = model({3, 4, 0, kNan}, "C64");
  const auto found = measure(*one.find("t"), 9, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->elements, 2u);
  EXPECT_EQ(found->max, 5);
  EXPECT_EQ(found->nan, 1u);
}

TEST_F(TensorValuesTest, LargeOnesAreMeasuredBlockByBlock) {
  std::vector<float> values(2'000'000, 1);
  values.back() = 7;
  const Model one = model(values);
  const auto found = measure(*one.find("t"), 2, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->elements, 2'000'000u);
  EXPECT_EQ(found->max, 7);
  EXPECT_EQ(found->first.size(), 2u);
}

TEST_F(TensorValuesTest, TellsHowFarApartValuesAre) {
  const TensorDifference found = difference(model({1, 2, 4, 8}), model({1, 2.5, 4, 6}));
  EXPECT_EQ(found.elements, 4u);
  EXPECT_EQ(found.other, 2u);
  EXPECT_EQ(found.beyond, 2u);
  EXPECT_EQ(found.first, 1u);
  EXPECT_EQ(found.absolute_max, 2);
  EXPECT_EQ(found.relative_max, 0.25L);
  EXPECT_EQ(difference(model({kNan, kInfinity}), model({kNan, kInfinity})).other, 0u);
}

TEST_F(TensorValuesTest, BytesCountUnlessThereIsATolerance) {
  const Model zero = model({0, 1});
  const Model negative = model({-0.0F, 1});
  EXPECT_EQ(difference(zero, negative).beyond, 1u);
  EXPECT_EQ(difference(zero, negative).absolute_max, 0);
  EXPECT_EQ(difference(zero, negative, {.tolerance = 1e-9L}).beyond, 0u);
  const Model near = model({1e-6F, 1.001F});
  EXPECT_EQ(difference(zero, near, {.tolerance = 0.01L}).beyond, 0u);
  EXPECT_EQ(difference(zero, near, {.tolerance = 0.0005L}).beyond, 1u);
}

TEST_F(TensorValuesTest, WhatIsNotFiniteIsInfinitelyFarFromWhatIs) {
  const TensorDifference found = difference(model({1, 2}), model({kNan, kInfinity}), {.tolerance = 1000});
  EXPECT_EQ(found.beyond, 2u);
  EXPECT_TRUE(std::isinf(found.absolute_max) && std::isinf(found.relative_max));
}

TEST_F(TensorValuesTest, ChecksumsAreBelievedOnlyWhereAsked) {
  const Model a = model({1, 2, 3});
  const Model b = model({1, 2, 3});
  const Model c = model({1, 2, 4});
  EXPECT_FALSE(difference(a, b).by_checksums);
  EXPECT_TRUE(difference(a, b, {.trust_checksums = true}).by_checksums);
  const TensorDifference other = difference(a, c, {.trust_checksums = true});
  EXPECT_FALSE(other.by_checksums);
  EXPECT_EQ(other.other, 1u);
}

TEST_F(TensorValuesTest, TheFirstDifferenceIsCountedOverAllBlocks) {
  std::vector<float> values(2'000'000, 1);
  const Model a = model(values);
  values[1'900'000] = 2;
  EXPECT_EQ(difference(a, model(values)).first, 1'900'000u);
}

}  // namespace
}  // namespace holdfast::store
