#include "world/ranges.h"

#include <algorithm>

namespace holdfast::world {
namespace {

/// Of which requests there are few enough, and which keep all connections busy until the end.
std::uint64_t range_bytes(std::uint64_t total, std::uint64_t left, const RangePolicy& policy) {
  const std::uint64_t at_a_time = std::max(1U, policy.connections) * policy.range_bytes;
  const std::uint64_t min = std::min(policy.range_bytes_min, policy.range_bytes);
  if (total <= at_a_time) return std::max(total / std::max(1U, policy.connections), min);
  return left > at_a_time ? policy.range_bytes : std::max(policy.range_bytes / 4, min);
}

}  // namespace

std::vector<Range> join_blocks(std::span<const BlockRead> blocks, const RangePolicy& policy) {
  std::uint64_t total = 0;
  for (const BlockRead& block : blocks) total += block.into.size();
  std::uint64_t left = total;
  std::uint64_t bytes_max = 0;
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::uint64_t begin = blocks[i].offset;
    const std::uint64_t end = begin + blocks[i].into.size();
    Range* last = ranges.empty() ? nullptr : &ranges.back();
    if (last != nullptr && begin >= last->end && begin - last->end <= policy.gap_bytes_max &&
        end - last->begin <= bytes_max) {
      last->end = end;
      last->end_block = i + 1;
    } else {
      bytes_max = range_bytes(total, left, policy);
      ranges.push_back({i, i + 1, begin, end});
    }
    left -= blocks[i].into.size();
  }
  return ranges;
}

}  // namespace holdfast::world
