#include "store/shard_plan.h"

#include <gtest/gtest.h>

#include <numeric>

namespace holdfast::store {
namespace {

using Sizes = std::vector<std::uint64_t>;

TEST(ShardPlan, FillsEachFileAsFarAsItGoes) {
  EXPECT_EQ(cut_by_size(Sizes{3, 3, 4, 9, 1, 1}, 7), (ShardPlan{{0, 1}, {2}, {3}, {4, 5}}));
  EXPECT_EQ(cut_by_size(Sizes{3, 0, 4}, 7), (ShardPlan{{0, 1, 2}}));
  EXPECT_EQ(cut_by_size(Sizes{}, 7), (ShardPlan{{}}));
  EXPECT_EQ(cut_by_size(Sizes{~0ULL, ~0ULL}, ~0ULL), (ShardPlan{{0}, {1}}));
}

TEST(ShardPlan, SoManyFilesAsAskedAsEvenAsCanBe) {
  EXPECT_EQ(*cut_into(Sizes{1, 1, 1, 1}, 2), (ShardPlan{{0, 1}, {2, 3}}));
  EXPECT_EQ(*cut_into(Sizes{9, 1, 1, 1}, 2), (ShardPlan{{0}, {1, 2, 3}}));
  EXPECT_EQ(*cut_into(Sizes{}, 1), (ShardPlan{{}}));
  for (std::size_t files = 1; files <= 7; ++files) {
    const ShardPlan plan = *cut_into(Sizes{5, 0, 2, 8, 0, 1, 3}, files);
    ASSERT_EQ(plan.size(), files);
    std::size_t next = 0;
    for (const auto& shard : plan) {
      EXPECT_FALSE(shard.empty());
      for (const std::size_t tensor : shard) EXPECT_EQ(tensor, next++);
    }
    EXPECT_EQ(next, 7u);
  }
  EXPECT_FALSE(cut_into(Sizes{1, 2}, 3));
  EXPECT_FALSE(cut_into(Sizes{1, 2}, 0));
}

TEST(ShardPlan, SizesAreReadAsPeopleWriteThem) {
  EXPECT_EQ(*parse_byte_size("5GB"), 5'000'000'000u);
  EXPECT_EQ(*parse_byte_size("4GiB"), 4ULL << 30U);
  EXPECT_EQ(*parse_byte_size("500MB"), 500'000'000u);
  EXPECT_EQ(*parse_byte_size("10KB"), 10'000u);
  EXPECT_EQ(*parse_byte_size("123"), 123u);
  for (const char* bad : {"", "0", "GB", "-1GB", "5 GB", "1.5GB", "5gb", "99999999999TB", "5GBs"}) {
    EXPECT_FALSE(parse_byte_size(bad)) << bad;
  }
}

}  // namespace
}  // namespace holdfast::store
