#include "store/row_parts.h"

#include <gtest/gtest.h>

#include "store/test_checkpoints.h"

namespace holdfast::store {
namespace {

using Shape = std::vector<std::uint64_t>;

TEST(CutRows, LargeTensorsBecomeRunsOfRowsAndSmallOnesStay) {
  const Bytes wide = test_bytes(1, 5 * 8), small = test_bytes(2, 16);
  const std::vector<TensorData> tensors = {{"w", "F32", {5, 2}, wide}, {"b", "U8", {16}, small}};
  const auto parts = cut_rows(tensors, {}, 16);
  ASSERT_TRUE(parts) << parts.error().message();
  ASSERT_EQ(parts->tensors.size(), 4U);
  EXPECT_EQ(parts->tensors[0].name, "w[0,0]");
  EXPECT_EQ(parts->tensors[2].name, "w[4,0]");
  EXPECT_EQ(parts->tensors[2].shape, (Shape{1, 2}));
  EXPECT_TRUE(std::ranges::equal(parts->tensors[1].bytes, BytesView(wide).subspan(16, 16)));
  EXPECT_EQ(parts->slices.at("w[2,0]"), (Slice{"w", {5, 2}, {2, 0}}));
  EXPECT_EQ(parts->tensors[3].name, "b");
  EXPECT_EQ(parts->slices.size(), 3U);
}

TEST(CutRows, APartOfAPartCountsFromTheWhole) {
  const Bytes bytes = test_bytes(1, 4);
  const std::vector<TensorData> tensors = {{"w[6]", "U8", {4}, bytes}};
  const auto parts = cut_rows(tensors, {{"w[6]", {"w", {10}, {6}}}}, 3);
  ASSERT_TRUE(parts) << parts.error().message();
  ASSERT_EQ(parts->tensors.size(), 2U);
  EXPECT_EQ(parts->tensors[1].name, "w[9]");
  EXPECT_EQ(parts->slices.at("w[9]"), (Slice{"w", {10}, {9}}));
}

TEST(CutRows, ARowLargerThanTheBoundIsAPartOfItsOwnAndScalarsStay) {
  const Bytes bytes = test_bytes(1, 20);
  const std::vector<TensorData> tensors = {{"w", "U8", {2, 10}, bytes}, {"s", "F64", {}, BytesView(bytes).first(8)}};
  const auto parts = cut_rows(tensors, {}, 4);
  ASSERT_TRUE(parts) << parts.error().message();
  ASSERT_EQ(parts->tensors.size(), 3U);
  EXPECT_EQ(parts->tensors[1].name, "w[1,0]");
  EXPECT_EQ(parts->tensors[2].name, "s");
}

}  // namespace
}  // namespace holdfast::store
