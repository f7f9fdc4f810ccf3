#include "store/shard_in_background.h"

#include <optional>

#include "world/parallel.h"

namespace holdfast::store {

Result<ShardRecord> write_shard_in_background(world::Disk& disk, const std::string& dir, Rank writer,
                                              std::uint32_t writers, std::span<const TensorData> tensors,
                                              const std::map<std::string, std::string>& metadata) {
  std::uint64_t bytes = 0;
  for (const TensorData& tensor : tensors) bytes += tensor.bytes.size();
  if (bytes < kGivesWayFrom) return write_shard(disk, dir, writer, writers, tensors, metadata);
  std::optional<Result<ShardRecord>> written;
  world::giving_way([&] { written = write_shard(disk, dir, writer, writers, tensors, metadata); });
  return *std::move(written);
}

}  // namespace holdfast::store
