#include "store/dtype.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

using Shape = std::vector<std::uint64_t>;

TEST(Dtype, ASizeIsElementsTimesBits) {
  EXPECT_EQ(*tensor_bytes("F32", Shape{2, 3}), 24U);
  EXPECT_EQ(*tensor_bytes("BF16", Shape{5}), 10U);
  EXPECT_EQ(*tensor_bytes("C64", Shape{}), 8U);
  EXPECT_EQ(*tensor_bytes("F4", Shape{4}), 2U);
  EXPECT_EQ(*tensor_bytes("F32", Shape{0, 7}), 0U);
}

TEST(Dtype, ADimensionBeyond32BitsIsExact) { EXPECT_EQ(*tensor_bytes("U8", Shape{1ULL << 33U}), 1ULL << 33U); }

TEST(Dtype, RefusesAnUnknownNameByName) {
  const auto size = tensor_bytes("F3", Shape{1});
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().message(), "unknown dtype F3");
}

TEST(Dtype, RefusesAProductBeyond64Bits) {
  EXPECT_FALSE(tensor_bytes("F64", Shape{1ULL << 32U, 1ULL << 32U}));
  EXPECT_FALSE(tensor_bytes("F64", Shape{UINT64_MAX}));
}

TEST(Dtype, RefusesElementsThatFillNoWholeByte) { EXPECT_FALSE(tensor_bytes("F4", Shape{3})); }

}  // namespace
}  // namespace holdfast::store
