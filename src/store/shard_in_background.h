// Writing a shard while a job computes: large ones behind whatever else wants the cores.
#pragma once

#include "store/shard.h"

namespace holdfast::store {

/// Smaller shards are written as they come: that costs a job next to nothing, and on a machine that is never idle
/// waiting for a turn would take them many times as long.
constexpr std::uint64_t kGivesWayFrom = std::uint64_t{16} << 20U;

/// As write_shard. Large ones are left to threads that give way (world/parallel.h): not for the simulator.
Result<ShardRecord> write_shard_in_background(world::Disk& disk, const std::string& dir, Rank writer,
                                              std::uint32_t writers, std::span<const TensorData> tensors,
                                              const std::map<std::string, std::string>& metadata = {});

}  // namespace holdfast::store
