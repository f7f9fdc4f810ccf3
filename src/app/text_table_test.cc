#include "app/text_table.h"

#include <gtest/gtest.h>

namespace holdfast::app {
namespace {

TEST(TextTable, IsAsWideAsItsWidestCells) {
  EXPECT_EQ(text_table({{"name", "size"}, {"a", "10 B"}, {"longer", "1.20 MB"}}, {1}),
            "name       size\na          10 B\nlonger  1.20 MB\n");
}

TEST(TextTable, CountsCharactersNotBytes) { EXPECT_EQ(text_table({{"ä", "x"}, {"bb", "y"}}), "ä   x\nbb  y\n"); }

TEST(TextTable, LetsNoNameMoveTheCursor) {
  EXPECT_EQ(text_table({{"a\n\x1b[2J\x7f"}}), "a??[2J?\n");
  EXPECT_EQ(printable("layer.\twé"), "layer.?wé");
}

TEST(SizeText, HasThreeDigits) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1'200'000), "1.20 MB");
  EXPECT_EQ(size_text(5'000'000'000'000'000), "5000.00 TB");
}

}  // namespace
}  // namespace holdfast::app
