// A shard: the tensors of one writer of a checkpoint, as one safetensors file, with a checksum for every chunk.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/aligned_bytes.h"
#include "store/safetensors.h"
#include "store/tensor_data.h"
#include "world/disk.h"

namespace holdfast::store {

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20U;
constexpr std::uint32_t kShardsMax = 65'536;

/// What a manifest says of one shard: enough to verify every byte.
struct ShardRecord {
  std::string file;         ///< name inside the checkpoint's directory
  std::uint64_t bytes = 0;  ///< size of the file
  std::uint64_t chunk_bytes = kChunkBytes;
  std::vector<std::uint32_t> chunk_crcs;  ///< CRC32C of each chunk, the last one may be shorter
  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

/// "shard-0-of-4.safetensors".
std::string shard_file_name(Rank writer, std::uint32_t writers);

/// Writes `dir`/shard-W-of-N.safetensors (making `dir`) so that on Ok its bytes outlive a crash: aside, sync, rename,
/// sync of the directory. On an error what was written aside is removed, as far as the disk still obeys. Blocks for the
/// writing and two syncs. Errors: BadInput (tensors that do not fit the format), Unavailable (disk full).
Result<ShardRecord> write_shard(world::Disk& disk, const std::string& dir, Rank writer, std::uint32_t writers,
                                std::span<const TensorData> tensors,
                                const std::map<std::string, std::string>& metadata = {});

/// Reads every byte and checks it; needs one chunk of memory. Errors: NotFound, Corrupt (naming file and chunk),
/// Unavailable.
Status verify_shard(world::Disk& disk, const std::string& dir, const ShardRecord& record);

/// A verified shard in memory. Its tensors lie in one block, the data buffer at a multiple of 64.
class LoadedShard {
 public:
  LoadedShard(SafetensorsHeader header, AlignedBytes block, std::size_t data_begin)
      : header_(std::move(header)), block_(std::move(block)), data_begin_(data_begin) {}
  const SafetensorsHeader& header() const { return header_; }
  /// Valid as long as this object (also after a move of it).
  BytesView bytes(const TensorInfo& tensor) const {
    return block_.all().subspan(data_begin_ + tensor.begin, tensor.end - tensor.begin);
  }

 private:
  SafetensorsHeader header_;
  AlignedBytes block_;
  std::size_t data_begin_;
};

/// The shard in memory, every byte checked. Errors: as verify_shard; BadInput where it verifies but is no safetensors.
Result<LoadedShard> load_shard(world::Disk& disk, const std::string& dir, const ShardRecord& record);

}  // namespace holdfast::store
