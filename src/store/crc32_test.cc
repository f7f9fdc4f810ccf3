#include "store/crc32.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

TEST(Crc32, IsThatOfZipFiles) {
  EXPECT_EQ(crc32(as_bytes("")), 0u);
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xCBF43926u);
}

TEST(Crc32, OfPartsIsThatOfTheWhole) {
  EXPECT_EQ(crc32(as_bytes("6789"), crc32(as_bytes("12345"))), crc32(as_bytes("123456789")));
}

}  // namespace
}  // namespace holdfast::store
