// The manifest of a checkpoint: written last, it says which shards belong to it, and by their checksums which bytes.
// A checkpoint without a manifest was never committed. Text layout: docs/format-checkpoint.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/shard.h"

namespace holdfast::store {

constexpr std::uint32_t kManifestVersion = 3;
constexpr std::uint64_t kManifestBytesMax = std::uint64_t{256} << 20U;
constexpr std::size_t kStructureBytesMax = std::size_t{64} << 20U;
constexpr std::size_t kRunIdBytesMax = 256;
constexpr std::size_t kKeptFilesMax = 65'536;  ///< of one shard

struct Manifest {
  std::string run_id;
  Step step = kNoStep;  ///< the state has applied this many steps
  Epoch epoch = 0;      ///< the epoch that wrote it
  std::uint32_t world_size = 0;
  std::string structure;            ///< JSON text of the binding's own: how the state is put together from its tensors
  std::vector<ShardRecord> shards;  ///< by writer: shard-0-of-N, shard-1-of-N, ...
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Holds what every manifest must: bounds, a full set of shards. Errors: BadInput.
Status check_manifest(const Manifest& manifest);

/// Errors: BadInput (as check_manifest; a text that is not UTF-8).
Result<std::string> manifest_to_text(const Manifest& manifest);

/// Errors: Corrupt (a byte was changed or lost), BadInput (another version, or whole but not what a manifest holds).
Result<Manifest> manifest_from_text(std::string_view text);

/// The files of older checkpoints that it needs, each once.
std::vector<KeptFile> kept_files(const Manifest& manifest);

/// `body` with the first and last line that carry its version and checksum.
std::string wrap_manifest_body(std::string_view body);

}  // namespace holdfast::store
