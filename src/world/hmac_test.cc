#include "world/hmac.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::world {
namespace {

std::string hex(BytesView bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

// RFC 4231, test cases 2 and 6.
TEST(Hmac, AgreesWithThePublishedVectors) {
  EXPECT_EQ(hex(Hmac(as_bytes("Jefe")).of({as_bytes("what do ya want for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(Hmac(as_bytes(std::string(131, '\xaa')))
                    .of({as_bytes("Test Using Larger Than Block-Size Key - Hash Key First")})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, JoinsItsPartsAndCanBeUsedAgain) {
  Hmac hmac(as_bytes("Jefe"));
  const Mac first = hmac.of({as_bytes("what do ya "), as_bytes("want for nothing?")});
  EXPECT_EQ(hex(first), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac.of({as_bytes("what do ya want for nothing?")}), first);
}

TEST(Hmac, TakesAnEmptyKey) { EXPECT_NE(Hmac(BytesView()).of({as_bytes("a")}), Hmac(BytesView()).of({})); }

TEST(SameSecret, ComparesBytesAndLengths) {
  EXPECT_TRUE(same_secret(as_bytes("abc"), as_bytes("abc")));
  EXPECT_FALSE(same_secret(as_bytes("abc"), as_bytes("abd")));
  EXPECT_FALSE(same_secret(as_bytes("abc"), as_bytes("abcd")));
}

}  // namespace
}  // namespace holdfast::world
