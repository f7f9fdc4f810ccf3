// Shards that leave out what has not changed: parts of tensors that an older checkpoint of the same directory holds,
// known again by their digests, stay where they are. Format: docs/format-checkpoint.md.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/digest.h"
#include "store/open_checkpoint.h"
#include "store/shard.h"
#include "store/tensor_file.h"

namespace holdfast::store {

/// Parts of tensors that committed files hold.
struct KnownParts {
  struct Part {
    Digest digest;
    std::uint64_t bytes = 0;
    std::size_t file = 0;  ///< of `files`
  };
  std::vector<KeptFile> files;
  std::map<std::string, Part> parts;

  /// Those of a committed checkpoint, as far as it was written incrementally: none where it was not. Errors: BadInput
  /// (digests that are none).
  static Result<KnownParts> of(const OpenCheckpoint& checkpoint);
};

struct IncrementalShard {
  ShardRecord record;
  KnownParts known;  ///< what holds once the checkpoint is committed
};

/// As write_shard, but for parts that `known` holds with the same bytes. A file is left in use only while at least half
/// of it is current, so a directory never needs more than twice the state besides the checkpoints that retention keeps.
/// `dir`: the checkpoint's. Errors: as write_shard; BadInput (slices of `metadata` that are none).
Result<IncrementalShard> write_incremental_shard(world::FileTree& files, const std::string& dir, Rank writer,
                                                 std::uint32_t writers, std::span<const TensorData> tensors,
                                                 const std::map<std::string, std::string>& metadata,
                                                 const KnownParts& known);

}  // namespace holdfast::store
