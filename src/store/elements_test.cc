#include "store/elements.h"

#include <gtest/gtest.h>

#include <cmath>

namespace holdfast::store {
namespace {

std::vector<long double> decoded(const std::string& dtype, const std::vector<unsigned>& raw) {
  Bytes bytes;
  for (const unsigned each : raw) bytes.push_back(static_cast<std::byte>(each));
  return decode_elements(dtype, bytes);
}

std::string text(const std::string& dtype, const std::vector<unsigned>& raw) {
  return element_text(dtype, decoded(dtype, raw).data());
}

using Values = std::vector<long double>;

TEST(Elements, WholeNumbersAreExact) {
  EXPECT_EQ(text("I64", {1, 0, 0, 0, 0, 0, 0, 0x80}), "-9223372036854775807");
  EXPECT_EQ(text("U64", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), "18446744073709551615");
  EXPECT_EQ(decoded("I8", {0xff, 0x7f}), (Values{-1, 127}));
  EXPECT_EQ(decoded("U16", {0xff, 0xff}), Values{65535});
  EXPECT_EQ(text("BOOL", {1}), "true");
}

TEST(Elements, FloatsAreShownInTheDigitsTheyHave) {
  EXPECT_EQ(text("F32", {0xcd, 0xcc, 0xcc, 0x3d}), "0.1");
  EXPECT_EQ(text("BF16", {0xcd, 0x3d}), "0.1001");
  EXPECT_EQ(text("F16", {0x66, 0x2e}), "0.099976");
  EXPECT_EQ(text("F64", {0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f}), "0.1");
  EXPECT_EQ(text("C64", {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}), "1-2i");
  EXPECT_EQ(text("F16", {0, 0xfc}), "-inf");
  EXPECT_EQ(text("BF16", {0xc0, 0x7f}), "nan");
}

TEST(Elements, EightBitFloatsHaveTheirOwnLimits) {
  EXPECT_EQ(decoded("F8_E4M3", {0x7e, 0x01, 0xb8}), (Values{448, std::ldexp(1.0L, -9), -1}));
  EXPECT_TRUE(std::isnan(decoded("F8_E4M3", {0x7f})[0]));
  EXPECT_EQ(decoded("F8_E5M2", {0x7b, 0x7c}), (Values{57344, INFINITY}));
  EXPECT_TRUE(std::isnan(decoded("F8_E5M2", {0x7d})[0]));
  EXPECT_EQ(decoded("F8_E4M3FNUZ", {0x7f, 0x00}), (Values{240, 0}));
  EXPECT_TRUE(std::isnan(decoded("F8_E4M3FNUZ", {0x80})[0]));
  EXPECT_EQ(decoded("F8_E5M2FNUZ", {0x7f}), Values{57344});
  EXPECT_EQ(decoded("F8_E8M0", {127, 0, 254}), (Values{1, std::ldexp(1.0L, -127), std::ldexp(1.0L, 127)}));
  EXPECT_TRUE(std::isnan(decoded("F8_E8M0", {255})[0]));
}

TEST(Elements, NarrowOnesFillBytesFromTheLowBits) {
  EXPECT_EQ(decoded("F4", {0x71, 0xa0}), (Values{0.5, 6, 0, -1}));
  // Codes 1, 2, 3 and 63, six bits each.
  EXPECT_EQ(decoded("F6_E2M3", {0x81, 0x30, 0xfc}), (Values{0.125, 0.25, 0.375, -7.5}));
  EXPECT_EQ(decoded("F6_E3M2", {0x81, 0x30, 0xfc}), (Values{0.0625, 0.125, 0.1875, -28}));
}

}  // namespace
}  // namespace holdfast::store
