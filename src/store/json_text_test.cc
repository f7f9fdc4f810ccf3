#include "store/json_text.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

TEST(JsonQuote, EscapesWhatJsonReserves) { EXPECT_EQ(json_quote("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\u0001\""); }

TEST(JsonQuote, KeepsLettersOfEveryAlphabet) { EXPECT_EQ(json_quote("größe.重み"), "\"größe.重み\""); }

TEST(JsonQuote, RefusesWhatIsNotUtf8) {
  EXPECT_FALSE(json_quote("\xff"));
  EXPECT_FALSE(json_quote("\xc3"));
  EXPECT_FALSE(json_quote("\xed\xa0\x80"));
}

}  // namespace
}  // namespace holdfast::store
