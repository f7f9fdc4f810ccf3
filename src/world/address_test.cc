// How addresses are written and judged.
#include <gtest/gtest.h>

#include "world/net.h"

namespace holdfast::world {
namespace {

TEST(Address, IsWrittenAsPeopleTypeIt) {
  EXPECT_EQ((Address{"127.0.0.1", 80}.text()), "127.0.0.1:80");
  EXPECT_EQ((Address{"::1", 80}.text()), "[::1]:80");
}

TEST(Address, KnowsLoopback) {
  EXPECT_TRUE((Address{"127.0.0.1", 1}.loopback()));
  EXPECT_TRUE((Address{"127.9.9.9", 1}.loopback()));
  EXPECT_TRUE((Address{"::1", 1}.loopback()));
  EXPECT_FALSE((Address{"10.0.0.1", 1}.loopback()));
  EXPECT_FALSE((Address{"0.0.0.0", 1}.loopback()));
  EXPECT_FALSE((Address{"::", 1}.loopback()));
  EXPECT_FALSE((Address{"localhost", 1}.loopback()));
}

}  // namespace
}  // namespace holdfast::world
