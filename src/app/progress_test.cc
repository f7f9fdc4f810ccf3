#include "app/progress.h"

#include <gtest/gtest.h>

namespace holdfast::app {
namespace {

using std::chrono::seconds;

TEST(Progress, TellsShareSizeAndSpeed) {
  EXPECT_EQ(progress_text("copying", 1'200'000'000, 2'400'000'000, seconds(2)),
            "copying   50 %  1.20 GB of 2.40 GB  600.00 MB/s");
}

TEST(Progress, NeverTellsMoreThanAll) {
  EXPECT_EQ(progress_text("reading", 30, 20, seconds(1)), "reading  100 %  20 B of 20 B  30 B/s");
  EXPECT_EQ(progress_text("reading", 0, 0, {}), "reading  100 %  0 B of 0 B");
}

}  // namespace
}  // namespace holdfast::app
