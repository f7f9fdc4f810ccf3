#include "store/kept.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

SafetensorsHeader with(const std::string& key, const std::string& text) {
  SafetensorsHeader header;
  header.metadata[key] = text;
  return header;
}

TEST(Kept, IsReadBackAsItWasWritten) {
  const KeptNames kept = {{"step-000000000050-epoch-3/shard-0-of-4.safetensors", {"b", "w[0,0]"}}};
  EXPECT_EQ(*kept_names_of(with(kKeptKey, *format_kept(kept))), kept);
  EXPECT_TRUE(kept_names_of(SafetensorsHeader())->empty());
  EXPECT_FALSE(format_kept({{"\xff", {}}}));
}

TEST(Kept, WhatIsNoObjectOfListsIsRefused) {
  for (const char* text : {"", "[]", "{\"a\":1}", "{\"a\":[1]}", "{\"a\":[[[[\"b\"]]]]}"}) {
    const auto kept = kept_names_of(with(kKeptKey, text));
    ASSERT_FALSE(kept) << text;
    EXPECT_EQ(kept.error().code(), Code::BadInput);
  }
}

TEST(Digests, AreReadBackAsTheyWereWritten) {
  const Digests digests = {{"a", {1, 2}}, {"w[0,0]", {3, 4}}};
  EXPECT_EQ(*digests_of(with(kDigestsKey, format_digests(digests))), digests);
  EXPECT_TRUE(digests_of(SafetensorsHeader())->empty());
}

TEST(Digests, WhatHasNotThirtyTwoDigitsIsRefused) {
  for (const char* text : {"", "[]", "{\"a\":1}", "{\"a\":\"12\"}", "{\"a\":[\"12\"]}"}) {
    EXPECT_FALSE(digests_of(with(kDigestsKey, text))) << text;
  }
}

}  // namespace
}  // namespace holdfast::store
