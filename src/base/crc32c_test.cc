#include "base/crc32c.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Crc32c, GivesThePublishedCheckValue) { EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U); }

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c({}), 0U); }

TEST(Crc32c, ContinuesWhereAnotherEnded) {
  EXPECT_EQ(crc32c(as_bytes("456789"), crc32c(as_bytes("123"))), crc32c(as_bytes("123456789")));
}

}  // namespace
}  // namespace holdfast
