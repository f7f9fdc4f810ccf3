// A shard: the tensors of one writer of a checkpoint, as one tensor file (tensor_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/tensor_data.h"
#include "store/tensor_file.h"
#include "world/file_tree.h"

namespace holdfast::store {

constexpr std::uint32_t kShardsMax = 65'536;

/// A shard of an older checkpoint that still holds tensors of a newer one (incremental.h).
struct KeptFile {
  std::string checkpoint;  ///< name of its directory, beside the newer one's
  std::string file;
  std::uint64_t bytes = 0;       ///< size of the file
  std::uint32_t header_crc = 0;  ///< see TensorFile
  friend bool operator==(const KeptFile&, const KeptFile&) = default;
};

/// What a manifest says of one shard: enough to verify every byte, since the header holds the checksums of the data.
struct ShardRecord {
  std::string file;                 ///< name inside the checkpoint's directory
  std::uint64_t bytes = 0;          ///< size of the file
  std::uint32_t header_crc = 0;     ///< see TensorFile
  std::vector<KeptFile> kept = {};  ///< where the tensors are that this shard leaves out
  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

/// The record of `kept` in its own checkpoint.
ShardRecord of_older(const KeptFile& kept);

/// "shard-0-of-4.safetensors".
std::string shard_file_name(Rank writer, std::uint32_t writers);

/// Writes `dir`/shard-W-of-N.safetensors (making `dir`) so that on Ok its bytes outlive a crash. On an error what was
/// written aside is removed, as far as the disk still obeys. Blocks for the writing and two syncs. Errors: BadInput
/// (tensors that do not fit the format), Unavailable (disk full).
Result<ShardRecord> write_shard(world::FileTree& files, const std::string& dir, Rank writer, std::uint32_t writers,
                                std::span<const TensorData> tensors,
                                const std::map<std::string, std::string>& metadata = {});

/// Reads the header alone and checks it. Errors: NotFound, Corrupt (naming the file), Unavailable.
Result<OpenTensorFile> open_shard(world::FileSource& files, const std::string& dir, const ShardRecord& record);

/// Reads every byte and checks it, in bounded memory. Errors: as read_shard, naming the chunk too.
Status verify_shard(world::FileSource& files, const std::string& dir, const ShardRecord& record, unsigned threads = 1);

/// The shard in memory, every byte checked. Errors: as verify_shard.
Result<LoadedTensors> load_shard(world::FileSource& files, const std::string& dir, const ShardRecord& record,
                                 unsigned threads = 1);

}  // namespace holdfast::store
