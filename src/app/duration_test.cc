#include "app/duration.h"

#include <gtest/gtest.h>

namespace holdfast::app {
namespace {

TEST(Duration, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*parse_duration("30"), std::chrono::seconds(30));
  EXPECT_EQ(*parse_duration("1.5s"), std::chrono::milliseconds(1500));
  EXPECT_EQ(*parse_duration("250ms"), std::chrono::milliseconds(250));
  EXPECT_EQ(*parse_duration("2h"), std::chrono::hours(2));
}

TEST(Duration, RefusesTheRestWithTheMend) {
  for (const char* text : {"", "s", "-1", "5 m", "1d", "1e99", "nan", "inf"}) {
    auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message().find("write 30, 1.5s"), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast::app
