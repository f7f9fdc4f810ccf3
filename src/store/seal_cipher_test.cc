#include "store/seal_cipher.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

Bytes hex(std::string_view digits) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// Test case 14 of "The Galois/Counter Mode of Operation" (McGrew and Viega): key, nonce and text are all zeros.
TEST(SealCipher, IsAes256GcmAsPublished) {
  SealCipher cipher(Bytes(32), SealCipher::Use::Encrypt);
  Bytes text(16);
  const SealTag tag = cipher.encrypt({}, {}, text, text);
  EXPECT_EQ(text, hex("cea7403d4d606b6e074ec5d3baf39d18"));
  EXPECT_EQ(Bytes(tag.begin(), tag.end()), hex("d0d1c8a799996bf0265b98b5d48ab919"));
}

TEST(SealCipher, OpensOnlyWhatItSealed) {
  const Bytes key(32, std::byte{7});
  SealCipher seal(key, SealCipher::Use::Encrypt);
  SealCipher open(key, SealCipher::Use::Decrypt);
  const Bytes plain(1000, std::byte{3});
  Bytes sealed(plain.size());
  const SealTag tag = seal.encrypt({1, 2}, as_bytes("about"), plain, sealed);
  Bytes out(plain.size());
  EXPECT_TRUE(open.decrypt({1, 2}, as_bytes("about"), sealed, tag, out));
  EXPECT_EQ(out, plain);

  const Bytes zeros(plain.size());
  SealTag other_tag = tag;
  other_tag[15] ^= std::byte{1};
  Bytes other = sealed;
  other[999] ^= std::byte{1};
  SealCipher other_key(Bytes(32, std::byte{8}), SealCipher::Use::Decrypt);
  EXPECT_FALSE(open.decrypt({1, 2}, as_bytes("about"), sealed, other_tag, out));
  EXPECT_EQ(out, zeros);
  EXPECT_FALSE(open.decrypt({1, 2}, as_bytes("about"), other, tag, out));
  EXPECT_FALSE(open.decrypt({1, 2}, as_bytes("About"), sealed, tag, out));
  EXPECT_FALSE(open.decrypt({1, 3}, as_bytes("about"), sealed, tag, out));
  EXPECT_FALSE(open.decrypt({0, 2}, as_bytes("about"), sealed, tag, out));
  EXPECT_FALSE(other_key.decrypt({1, 2}, as_bytes("about"), sealed, tag, out));
  EXPECT_TRUE(open.decrypt({1, 2}, as_bytes("about"), sealed, tag, sealed)) << "in place, and after a failure";
  EXPECT_EQ(sealed, plain);
}

TEST(SealCipher, AFewBytesMoreOrLessAreFine) {
  SealCipher seal(Bytes(32), SealCipher::Use::Encrypt);
  SealCipher open(Bytes(32), SealCipher::Use::Decrypt);
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 4095u}) {
    Bytes text(size, std::byte{5});
    const SealTag tag = seal.encrypt({0, size}, {}, text, text);
    EXPECT_TRUE(open.decrypt({0, size}, {}, text, tag, text));
    EXPECT_EQ(text, Bytes(size, std::byte{5}));
  }
}

}  // namespace
}  // namespace holdfast::store
