#include "store/chunk_cover.h"

#include <gtest/gtest.h>

#include <numeric>

namespace holdfast::store {
namespace {

using Counts = std::vector<std::uint64_t>;

std::string why(const Counts& shape, const std::vector<Box>& boxes) {
  const Status covered = check_cover(shape, boxes);
  return covered ? "" : covered.error().message();
}

TEST(ChunkCover, TakesWhatCoversEveryElementOnce) {
  EXPECT_EQ(why({4, 6}, {{{0, 0}, {4, 6}}}), "");
  EXPECT_EQ(why({4, 6}, {{{0, 0}, {2, 6}}, {{2, 0}, {2, 2}}, {{2, 2}, {2, 4}}}), "");
  EXPECT_EQ(why({}, {{{}, {}}}), "");
  EXPECT_EQ(why({0, 3}, {}), "");
  EXPECT_EQ(why({2}, {{{0}, {2}}, {{2}, {0}}}), "");
}

TEST(ChunkCover, NamesWhatOverlapsLiesOutsideOrIsMissing) {
  EXPECT_NE(why({4}, {{{0}, {3}}, {{2}, {2}}}).find("the part of [3] at [0] and the part of [2] at [2] overlap"),
            std::string::npos);
  EXPECT_NE(why({4}, {{{0}, {3}}}).find("1 of its 4 elements"), std::string::npos);
  EXPECT_NE(why({4}, {{{1}, {4}}}).find("outside"), std::string::npos);
  EXPECT_NE(why({4}, {{{~std::uint64_t{0}}, {2}}}).find("outside"), std::string::npos);
  EXPECT_NE(why({4}, {{{0, 0}, {4, 1}}}).find("other dimensions"), std::string::npos);
  EXPECT_NE(why({}, {{{}, {}}, {{}, {}}}).find("twice"), std::string::npos);
  EXPECT_NE(why({2, 2}, {{{0, 0}, {2, 1}}, {{0, 0}, {1, 2}}}).find("overlap"), std::string::npos);
  EXPECT_NE(why({3}, {}).find("3 of its 3"), std::string::npos);
}

TEST(ChunkCover, ManyPartsAreComparedInTime) {
  std::vector<Box> boxes;
  for (std::uint64_t i = 0; i < 20'000; ++i) boxes.push_back({{0, i}, {2, 1}});
  EXPECT_EQ(why({2, 20'000}, boxes), "");
  boxes.push_back(boxes.front());
  EXPECT_NE(why({2, 20'000}, boxes).find("overlap"), std::string::npos);
  const std::vector<Box> alike(20'000, Box{{0, 0}, {2, 1}});
  EXPECT_NE(why({2, 20'000}, alike), "");
}

TEST(ChunkCover, PartsArePutToTheirPlaces) {
  const Counts shape = {3, 4};
  Bytes tensor(12);
  std::vector<Box> boxes = {{{0, 0}, {3, 1}}, {{0, 1}, {2, 3}}, {{2, 1}, {1, 3}}};
  for (const Box& box : boxes) {
    Bytes elements;
    for (std::uint64_t i = 0; i < box.shape[0]; ++i) {
      for (std::uint64_t j = 0; j < box.shape[1]; ++j) {
        elements.push_back(static_cast<std::byte>((box.begin[0] + i) * 4 + box.begin[1] + j));
      }
    }
    place_box(shape, box, 1, elements, tensor);
  }
  Bytes expected(12);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::byte>(i);
  EXPECT_EQ(tensor, expected);
}

TEST(ChunkCover, KnowsWhatLiesInOneRun) {
  EXPECT_TRUE(is_run(Counts{3, 4}, {{1, 0}, {2, 4}}));
  EXPECT_TRUE(is_run(Counts{3, 4}, {{1, 1}, {1, 2}}));
  EXPECT_FALSE(is_run(Counts{3, 4}, {{1, 1}, {2, 2}}));
  EXPECT_TRUE(is_run(Counts{}, {{}, {}}));
  EXPECT_EQ(first_element(Counts{3, 4}, {{1, 1}, {1, 2}}), 5u);
}

}  // namespace
}  // namespace holdfast::store
