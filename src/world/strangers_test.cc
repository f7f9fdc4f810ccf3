#include "world/strangers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::world {
namespace {

TEST(Strangers, AreLoggedOncePerHostWithTheReason) {
  Strangers strangers;
  testing::internal::CaptureStderr();
  strangers.refused("10.0.0.1", "its first bytes are wrong");
  strangers.refused("10.0.0.1", "something else");
  strangers.refused("10.0.0.2", "something else");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  EXPECT_NE(log.find("10.0.0.1: its first bytes are wrong"), std::string::npos) << log;
}

TEST(Strangers, FloodingFromManyHostsFillsNoLog) {
  Strangers strangers;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) strangers.refused("host" + std::to_string(i), "why");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 65);
}

}  // namespace
}  // namespace holdfast::world
