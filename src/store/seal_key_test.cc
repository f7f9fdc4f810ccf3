#include "store/seal_key.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

const std::string kHex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const std::string kBase64 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

Bytes counted() {
  Bytes bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<std::byte>(i));
  return bytes;
}

// g++ 12 takes what operator+ does here for an overrun.
std::string joined(std::string_view before, std::string_view text, std::string_view behind) {
  std::string all(before);
  all.append(text).append(behind);
  return all;
}

Bytes parsed(std::string_view text, bool may_be_raw = false) {
  const auto key = parse_seal_key(as_bytes(text), may_be_raw);
  return key ? Bytes(key->bytes().begin(), key->bytes().end()) : Bytes();
}

TEST(SealKey, IsReadAsDigitsAsBase64AndRaw) {
  EXPECT_EQ(parsed(kHex), counted());
  EXPECT_EQ(parsed(kBase64), counted());
  EXPECT_EQ(parsed(joined("  ", kHex, "\r\n")), counted());
  EXPECT_EQ(parsed(joined("", kBase64, "\n"), true), counted());
  EXPECT_EQ(parsed(as_text(counted()), true), counted());
}

TEST(SealKey, AnythingElseIsRefusedWithoutTellingIt) {
  const std::vector<std::string> all_bad = {"",
                                            kHex.substr(1),
                                            joined("", kHex, "0"),
                                            joined("", kHex.substr(1), "g"),
                                            kBase64.substr(1),
                                            joined("", kBase64.substr(0, 42), "=="),
                                            joined("*", kBase64.substr(1), ""),
                                            "a password of 32 characters, no?"};
  for (const std::string& bad : all_bad) {
    const auto key = parse_seal_key(as_bytes(bad), false);
    ASSERT_FALSE(key) << bad;
    EXPECT_EQ(key.error().code(), Code::BadInput);
    EXPECT_TRUE(bad.empty() || key.error().message().find(bad.substr(0, 9)) == std::string::npos);
  }
}

TEST(SealKey, IdsTellKeysApart) {
  const auto one = parse_seal_key(as_bytes(kHex), false);
  Bytes other = counted();
  other[31] ^= std::byte{1};
  EXPECT_EQ(one->id(), parse_seal_key(as_bytes(kBase64), false)->id());
  EXPECT_NE(one->id(), parse_seal_key(other, true)->id());
  EXPECT_EQ(key_id_text(one->id()).size(), 16u);
}

}  // namespace
}  // namespace holdfast::store
