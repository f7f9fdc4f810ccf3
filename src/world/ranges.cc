#include "world/ranges.h"

#include <algorithm>

namespace holdfast::world {

std::vector<Range> join_blocks(std::span<const BlockRead> blocks, const RangePolicy& policy) {
  std::uint64_t total = 0;
  for (const BlockRead& block : blocks) total += block.into.size();
  const std::uint64_t share = total / std::max(1U, policy.connections);
  const std::uint64_t range_bytes =
      std::clamp(share, std::min(policy.range_bytes_min, policy.range_bytes), policy.range_bytes);
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::uint64_t begin = blocks[i].offset;
    const std::uint64_t end = begin + blocks[i].into.size();
    Range* last = ranges.empty() ? nullptr : &ranges.back();
    if (last != nullptr && begin >= last->end && begin - last->end <= policy.gap_bytes_max &&
        end - last->begin <= range_bytes) {
      last->end = end;
      last->end_block = i + 1;
    } else {
      ranges.push_back({i, i + 1, begin, end});
    }
  }
  return ranges;
}

}  // namespace holdfast::world
