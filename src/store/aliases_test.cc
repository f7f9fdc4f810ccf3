#include "store/aliases.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

TEST(Aliases, AreReadAsTheyWereWritten) {
  for (const Aliases& aliases : {Aliases{}, Aliases{{"a", "b"}, {"c \"d\"", "ü"}}}) {
    EXPECT_EQ(*parse_aliases(*format_aliases(aliases)), aliases);
  }
  EXPECT_EQ(aliases_of({})->size(), 0u);
  EXPECT_EQ(aliases_of({{kAliasesKey, R"({"x":"y"})"}})->at("x"), "y");
}

TEST(Aliases, AreATableOfNamesAndNothingElse) {
  for (const char* bad : {"", "[]", "3", R"({"a":1})", R"({"a":{}})", R"({"a":["b"]})", R"({"a":"b","a":"c"})",
                          R"("a")", R"({"a":"b"} x)", R"({"a":null})"}) {
    EXPECT_FALSE(parse_aliases(bad)) << bad;
  }
  EXPECT_FALSE(format_aliases({{"a\xff", "b"}}));
}

}  // namespace
}  // namespace holdfast::store
