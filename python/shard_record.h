// What Python knows of a shard, to be told among ranks.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "store/shard.h"

namespace holdfast::python {

/// Checkpoint, file, bytes, CRC32C of the header: of an older file that a shard needs.
using Kept = std::tuple<std::string, std::string, std::uint64_t, std::uint32_t>;
/// File, bytes, CRC32C of the header, older files: what a manifest says of a shard.
using Record = std::tuple<std::string, std::uint64_t, std::uint32_t, std::vector<Kept>>;

inline Record to_record(const store::ShardRecord& shard) {
  std::vector<Kept> kept;
  for (const store::KeptFile& file : shard.kept) {
    kept.emplace_back(file.checkpoint, file.file, file.bytes, file.header_crc);
  }
  return {shard.file, shard.bytes, shard.header_crc, std::move(kept)};
}

inline store::ShardRecord from_record(const Record& record) {
  const auto& [file, bytes, crc, kept] = record;
  store::ShardRecord shard{file, bytes, crc};
  for (const auto& [checkpoint, older, older_bytes, older_crc] : kept) {
    shard.kept.push_back({checkpoint, older, older_bytes, older_crc});
  }
  return shard;
}

}  // namespace holdfast::python
