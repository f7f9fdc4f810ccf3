#include "store/checksums.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kMiB = kChecksumChunkBytes;

std::string why_refused(std::string_view text, std::uint64_t data_bytes) {
  const auto parsed = parse_checksums(text, data_bytes);
  return parsed ? "" : parsed.error().message();
}

TEST(Checksums, CountTheLastChunkHoweverShort) {
  EXPECT_EQ(chunk_count(0), 0u);
  EXPECT_EQ(chunk_count(1), 1u);
  EXPECT_EQ(chunk_count(kMiB), 1u);
  EXPECT_EQ(chunk_count(kMiB + 1), 2u);
  EXPECT_EQ(chunk_count(~std::uint64_t{0}), std::uint64_t{1} << 44U);
}

TEST(Checksums, AreReadAsTheyWereWritten) {
  const Checksums checksums{0x0123abcd, {0, 0xffffffff, 0x80000001}};
  const std::string text = format_checksums(checksums);
  EXPECT_EQ(text, "crc32c:1048576:0123abcd00000000ffffffff80000001");
  const auto parsed = parse_checksums(text, 2 * kMiB + 1);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(*parsed, checksums);
}

TEST(Checksums, AreRefusedWithTheReason) {
  EXPECT_NE(why_refused("sha256:1048576:00000000", 0).find("not of a kind"), std::string::npos);
  EXPECT_NE(why_refused("crc32c:65536:00000000", 0).find("not of a kind"), std::string::npos);
  EXPECT_NE(why_refused("crc32c:1048576:0000000000000000", 0).find("16 digits, 0 bytes of data need 8"),
            std::string::npos);
  EXPECT_NE(why_refused("crc32c:1048576:0000000", 0), "");
  EXPECT_NE(why_refused("crc32c:1048576:00000000", ~std::uint64_t{0}), "");
  EXPECT_NE(why_refused("crc32c:1048576:0000000g", 0).find("hexadecimal"), std::string::npos);
  EXPECT_NE(why_refused("crc32c:1048576:0000000A", 0), "");
  EXPECT_NE(why_refused("crc32c:1048576:0x000000", 0), "");
  EXPECT_NE(why_refused("crc32c:1048576:-0000001", 0), "");
}

TEST(Checksums, OfAHeaderCoverEverythingButTheirOwnDigits) {
  const std::string before = "{\"__metadata__\":{\"holdfast.checksums\":\"";
  const std::string text = format_checksums({0x11111111, {0x22222222}});
  const std::string blank = format_checksums({0, {0}});
  const auto sum = [](const std::string& prefix, const std::string& value) {
    return header_checksum(as_bytes(prefix), value);
  };
  EXPECT_EQ(*sum(before + text + "\"}}", text), crc32c(as_bytes(before + blank + "\"}}")));
  EXPECT_NE(*sum(before + text + "\"} }", text), *sum(before + text + "\"}}", text));
  EXPECT_FALSE(sum(before + "\"}}", text));
  EXPECT_FALSE(sum(before + text, "crc"));
}

}  // namespace
}  // namespace holdfast::store
