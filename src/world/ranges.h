// Blocks of a remote file, joined into ranges that are fetched by one request each. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "world/files.h"

namespace holdfast::world {

struct RangePolicy {
  unsigned connections = 8;                                 ///< requests at a time
  std::uint64_t range_bytes = std::uint64_t{32} << 20U;     ///< of one request at most, about; the last are a quarter
  std::uint64_t range_bytes_min = std::uint64_t{1} << 20U;  ///< where there is too little for all connections
  std::uint64_t gap_bytes_max = std::uint64_t{64} << 10U;   ///< read and dropped rather than asked for around
};

/// Neighbours in the list of blocks, begun and ended by one: `end` is one past the last.
struct Range {
  std::size_t first_block = 0;
  std::size_t end_block = 0;
  std::uint64_t begin = 0;  ///< in the file
  std::uint64_t end = 0;
};

/// Covers every block once, in their order. A block larger than a range is a range of its own.
std::vector<Range> join_blocks(std::span<const BlockRead> blocks, const RangePolicy& policy);

}  // namespace holdfast::world
