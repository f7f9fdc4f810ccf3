#include "store/shown.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

TEST(Shown, LeavesPlainTextAlone) {
  EXPECT_EQ(shown("layers.0.w"), "layers.0.w");
  EXPECT_EQ(shown("gr\xC3\xB6\xC3\x9F"
                  "e"),
            "gr\xC3\xB6\xC3\x9F"
            "e");
}

TEST(Shown, IsOneLineWhateverTheText) {
  EXPECT_EQ(shown("a\nb\x1b[0m\xFF"), "a?b?[0m?");
  const std::string cut = shown(std::string(1000, 'x'));
  EXPECT_EQ(cut.size(), 203u);
  EXPECT_EQ(cut.substr(199), "x...");
}

TEST(Shown, IsNotCutWithinALetter) {
  std::string text(199, 'x');
  text.append("\xC3\xB6 and more");
  const std::string cut = shown(text);
  EXPECT_EQ(cut.size(), 202u);
  EXPECT_EQ(cut.substr(198), "x...");
}

}  // namespace
}  // namespace holdfast::store
