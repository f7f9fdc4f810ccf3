#include "world/ranges.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

constexpr RangePolicy kPolicy{.connections = 2, .range_bytes = 40, .range_bytes_min = 10, .gap_bytes_max = 3};

/// Blocks of the given places and sizes; nobody reads into them.
class Blocks {
 public:
  Blocks& add(std::uint64_t offset, std::size_t size) {
    list_.push_back({offset, std::span(memory_).first(size)});
    return *this;
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> joined(const RangePolicy& policy) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    std::size_t next = 0;
    for (const Range& range : join_blocks(list_, policy)) {
      EXPECT_EQ(range.first_block, next);
      EXPECT_EQ(range.begin, list_[range.first_block].offset);
      next = range.end_block;
      places.emplace_back(range.begin, range.end);
    }
    EXPECT_EQ(next, list_.size());
    return places;
  }

 private:
  Bytes memory_ = Bytes(1000);
  std::vector<BlockRead> list_;
};

using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(Ranges, JoinNeighboursUpToTheirSize) {
  EXPECT_EQ(Blocks().add(0, 20).add(20, 20).add(40, 20).add(60, 20).joined(kPolicy), (Places{{0, 40}, {40, 80}}));
}

TEST(Ranges, GetSmallerTowardsTheEndSoThatAllConnectionsAreBusyUntilThen) {
  EXPECT_EQ(Blocks().add(0, 20).add(20, 20).add(40, 20).add(60, 5).add(65, 5).add(70, 20).joined(kPolicy),
            (Places{{0, 40}, {40, 60}, {60, 70}, {70, 90}}));
}

TEST(Ranges, AreSmallerWhereThereIsTooLittleForAllConnections) {
  EXPECT_EQ(Blocks().add(0, 10).add(10, 10).add(20, 10).add(30, 10).joined(kPolicy), (Places{{0, 20}, {20, 40}}));
  EXPECT_EQ(Blocks().add(0, 5).add(5, 5).joined(kPolicy), (Places{{0, 10}}));
}

TEST(Ranges, StepOverSmallGapsAlone) {
  EXPECT_EQ(Blocks().add(0, 10).add(13, 10).add(27, 10).joined(kPolicy), (Places{{0, 10}, {13, 23}, {27, 37}}));
  RangePolicy one = kPolicy;
  one.connections = 1;
  EXPECT_EQ(Blocks().add(0, 10).add(13, 10).add(27, 10).joined(one), (Places{{0, 23}, {27, 37}}));
}

TEST(Ranges, KeepTheOrderTheyAreGivenIn) {
  EXPECT_EQ(Blocks().add(50, 5).add(0, 5).add(3, 5).joined(kPolicy), (Places{{50, 55}, {0, 5}, {3, 8}}));
}

TEST(Ranges, OfOneLargeBlockAreNotCut) {
  EXPECT_EQ(Blocks().add(7, 500).joined(kPolicy), (Places{{7, 507}}));
  EXPECT_TRUE(Blocks().joined(kPolicy).empty());
}

}  // namespace
}  // namespace holdfast::world
