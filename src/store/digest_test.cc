#include "store/digest.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

TEST(Digest, ChangesWithDtypeShapeAndContent) {
  const Digest one = digest_of("U8", {4}, as_bytes("abcd"));
  EXPECT_EQ(one, digest_of("U8", {4}, as_bytes("abcd")));
  EXPECT_NE(one, digest_of("I8", {4}, as_bytes("abcd")));
  EXPECT_NE(one, digest_of("U8", {2, 2}, as_bytes("abcd")));
  EXPECT_NE(one, digest_of("U8", {4}, as_bytes("abce")));
}

TEST(Digest, IsReadBackFromItsText) {
  const Digest digest{0x0123456789abcdefU, 7};
  EXPECT_EQ(digest_text(digest), "0123456789abcdef0000000000000007");
  EXPECT_EQ(parse_digest(digest_text(digest)), digest);
  EXPECT_FALSE(parse_digest("0123456789abcdef000000000000000"));
  EXPECT_FALSE(parse_digest("0123456789ABCDEF0000000000000007"));
}

}  // namespace
}  // namespace holdfast::store
