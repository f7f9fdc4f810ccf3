#include "world/retry.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Retry, WaitsTwiceAsLongEachTimeUpToABound) {
  const RetryPolicy policy{.wait_min = milliseconds(100), .wait_max = milliseconds(1000)};
  const int waits[] = {100, 200, 400, 800, 1000, 1000};
  for (unsigned failures = 1; failures <= 6; ++failures) {
    EXPECT_EQ(wait_before_retry(policy, failures, 0, {}), milliseconds(waits[failures - 1]));
  }
  EXPECT_EQ(wait_before_retry(policy, 4'000'000'000U, 0, {}), milliseconds(1000));
}

TEST(Retry, ChanceTakesOffUpToAHalf) {
  for (std::uint64_t chance = 0; chance < 5000; chance += 7) {
    const auto wait = wait_before_retry({}, 3, chance, {});
    EXPECT_GT(wait, milliseconds(200));
    EXPECT_LE(wait, milliseconds(400));
  }
  EXPECT_NE(wait_before_retry({}, 3, 1000, {}), wait_before_retry({}, 3, 1, {}));
}

TEST(Retry, WaitsAsLongAsTheServerAsksUpToABound) {
  const RetryPolicy policy{.asked_wait_max = milliseconds(5500)};
  EXPECT_EQ(wait_before_retry(policy, 1, 0, seconds(3)), seconds(3));
  EXPECT_EQ(wait_before_retry(policy, 1, 0, seconds(9)), milliseconds(5500));
  EXPECT_EQ(wait_before_retry(policy, 1, 0, seconds::max()), milliseconds(5500));
  EXPECT_EQ(wait_before_retry(policy, 1, 0, seconds(0)), milliseconds(100));
}

}  // namespace
}  // namespace holdfast::world
