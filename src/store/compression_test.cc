#include "store/compression.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

Bytes squeezed(BytesView plain) {
  Bytes out(plain.size() + 64);
  out.resize(Compressor(1).compress(plain, out));
  return out;
}

TEST(Compression, GivesBackWhatWasPutIn) {
  Bytes plain(100'000);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i / 300);
  const Bytes small = squeezed(plain);
  EXPECT_LT(small.size(), plain.size() / 10);
  Bytes out(plain.size());
  ASSERT_TRUE(Decompressor().decompress(small, out));
  EXPECT_EQ(out, plain);
}

TEST(Compression, SaysWhenThereIsTooLittleRoom) {
  const Bytes plain(100'000, std::byte{1});
  Bytes out(5);
  EXPECT_EQ(Compressor(3).compress(plain, out), 0u);
  EXPECT_EQ(Compressor(3).compress(plain, std::span(out).first(0)), 0u);
}

// A bomb: a few bytes that claim to become more than there is room for.
TEST(Compression, AFrameOfAnotherSizeIsRefusedAndNothingIsWrittenBehind) {
  const Bytes frame = squeezed(Bytes(1 << 20, std::byte{9}));
  Bytes out(1001, std::byte{4});
  EXPECT_FALSE(Decompressor().decompress(frame, std::span(out).first(1000)));
  EXPECT_EQ(out[1000], std::byte{4});
  Bytes larger((1 << 20) + 1);
  EXPECT_FALSE(Decompressor().decompress(frame, larger));
}

TEST(Compression, WhatIsNotOneFrameIsRefused) {
  const Bytes frame = squeezed(Bytes(1000, std::byte{9}));
  Bytes out(1000);
  EXPECT_FALSE(Decompressor().decompress({}, out));
  EXPECT_FALSE(Decompressor().decompress(Bytes(50, std::byte{1}), out));
  for (std::size_t cut = 0; cut < frame.size(); ++cut) {
    EXPECT_FALSE(Decompressor().decompress(BytesView(frame).first(cut), out));
  }
  Bytes twice = frame;
  twice.insert(twice.end(), frame.begin(), frame.end());
  Bytes room(2000);
  EXPECT_FALSE(Decompressor().decompress(twice, room));
  EXPECT_TRUE(Decompressor().decompress(frame, out));
}

}  // namespace
}  // namespace holdfast::store
