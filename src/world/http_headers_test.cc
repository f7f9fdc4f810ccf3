#include "world/http_headers.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

TEST(HttpHead, FindsHeadersWhateverTheirCase) {
  HttpHead head;
  for (const char* line : {"HTTP/1.1 206 Partial Content\r\n", "ETag:  \"abc\" \r\n", "no header\r\n", "\r\n"}) {
    head.take(line);
  }
  EXPECT_EQ(head.status(), 206);
  EXPECT_EQ(head.header("etag"), "\"abc\"");
  EXPECT_EQ(head.header("content-length"), "");
}

TEST(HttpHead, ForgetsWhatCameBeforeAnotherStatusLine) {
  HttpHead head;
  head.take("HTTP/1.1 302 Found");
  head.take("ETag: \"of the redirect\"");
  head.take("HTTP/1.1 200 OK");
  EXPECT_EQ(head.status(), 200);
  EXPECT_EQ(head.header("etag"), "");
}

TEST(HttpHead, HasNoStatusWhereTheLineIsNone) {
  for (const char* line : {"HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 abc", "HTTP/1.1 99999999999999999999", "HTTP/1.1 20"}) {
    HttpHead head;
    head.take(line);
    EXPECT_EQ(head.status(), 0) << line;
  }
}

TEST(HttpHead, HoldsNoMoreThanAServerMaySay) {
  HttpHead head;
  head.take("HTTP/1.1 200 OK");
  for (int i = 0; i < 1000; ++i) head.take("a" + std::to_string(i) + ": " + std::string(1000, 'x'));
  EXPECT_NE(head.header("a0"), "");
  EXPECT_EQ(head.header("a999"), "");
}

TEST(ContentRange, IsReadAsItsEndsAndTheSize) {
  const auto range = parse_content_range("bytes 5-9/100");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 5U);
  EXPECT_EQ(range->end, 10U);
  EXPECT_EQ(range->size, 100U);
  EXPECT_EQ(parse_content_range("Bytes */7")->size, 7U);
}

TEST(ContentRange, IsNoneWhereItMakesNoSense) {
  for (const char* bad : {"", "bytes", "bytes 5-9", "bytes 9-5/100", "bytes 5-100/100", "bytes -5/100", "bytes 5-9/*",
                          "bytes 0-18446744073709551615/18446744073709551615", "lines 5-9/100", "bytes 5-9/100x",
                          "bytes 5-99999999999999999999/100"}) {
    EXPECT_FALSE(parse_content_range(bad)) << bad;
  }
}

TEST(RetryAfter, IsACountOfSecondsAndNoDate) {
  EXPECT_EQ(parse_retry_after("7"), std::chrono::seconds(7));
  EXPECT_EQ(parse_retry_after("18446744073709551615"), std::chrono::seconds(86'400));
  for (const char* bad : {"", "-1", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT"}) EXPECT_FALSE(parse_retry_after(bad));
}

TEST(Printable, FitsALine) {
  EXPECT_EQ(printable("a\nb\x1b[31mc"), "a b [31mc");
  EXPECT_EQ(printable(std::string(300, 'x')).size(), 203U);
}

}  // namespace
}  // namespace holdfast::world
