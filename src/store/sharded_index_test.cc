#include "store/sharded_index.h"

#include <gtest/gtest.h>

namespace holdfast::store {
namespace {

std::string why_not(const std::string& text) {
  const auto index = parse_sharded_index(text);
  return index ? "" : index.error().message();
}

TEST(ShardedIndex, IsReadAsItWasWritten) {
  const ShardedIndex full{.total_size = 12, .weight_map = {{"a \"b\"", "one.safetensors"}, {"ü", "two.safetensors"}}};
  for (const ShardedIndex& index : {full, ShardedIndex{.total_size = 0, .weight_map = {}}, ShardedIndex{}}) {
    const auto text = format_sharded_index(index);
    ASSERT_TRUE(text);
    const auto read = parse_sharded_index(*text);
    ASSERT_TRUE(read) << read.error().message() << *text;
    EXPECT_EQ(*read, index);
  }
  EXPECT_EQ(full.files(), (std::vector<std::string>{"one.safetensors", "two.safetensors"}));
}

TEST(ShardedIndex, PassesOverWhatOthersAdd) {
  const auto index = parse_sharded_index(
      R"({"metadata": {"total_size": 5.0, "total_parameters": 7, "x": {"weight_map": {"no": 1}}, "y": [[{"z": 1}], 2]},
          "other": [1, {"weight_map": 1}], "weight_map": {"a": "f"}, "more": null})");
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_FALSE(index->total_size);
  EXPECT_EQ(index->weight_map, (std::map<std::string, std::string>{{"a", "f"}}));
}

TEST(ShardedIndex, FilesLieRightInTheFolder) {
  for (const char* name : {"", ".", "..", "/a", "../a", "a/b", "a/../b", "a\\\\b", "a\\u0000b", "a\\n"}) {
    const std::string why = why_not(std::string(R"({"weight_map": {"t": ")") + name + "\"}}");
    EXPECT_NE(why, "") << name;
  }
  EXPECT_NE(why_not(R"({"weight_map": {"t": ")" + std::string(256, 'x') + "\"}}"), "");
  EXPECT_EQ(why_not(R"({"weight_map": {"t": "..a"}})"), "");
}

TEST(ShardedIndex, RefusesWhatIsNone) {
  for (const char* text :
       {"", "{", "[]", "3", "null", "\"weight_map\"", "{}", R"({"weight_map": []})", R"({"weight_map": 1})",
        R"({"weight_map": "a"})", R"({"weight_map": {"a": 1}})", R"({"weight_map": {"a": {}}})",
        R"({"weight_map": {"a": ["f"]}})", R"({"weight_map": {"a": null}})", R"({"weight_map": {"a": "f", "a": "g"}})",
        R"({"weight_map": {}, "weight_map": {}})", R"({"weight_map": {"a": "f"}} x)",
        "{\"weight_map\": {\"a\": \"\xff\"}}"}) {
    EXPECT_NE(why_not(text), "") << text;
  }
  EXPECT_NE(why_not(std::string("{\"weight_map\": {}}\0}", 20)), "");
  EXPECT_NE(why_not(R"({"weight_map": {"a": "f", "a": "g"}})").find("duplicate tensor a"), std::string::npos);
}

// S23
TEST(ShardedIndex, DeepNestingNeedsNoStack) {
  const std::string deep(1'000'000, '[');
  EXPECT_NE(why_not("{\"metadata\": " + deep), "");
}

}  // namespace
}  // namespace holdfast::store
