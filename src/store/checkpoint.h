// Reading one committed checkpoint: verifying it, or loading it whole.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/checkpoint_id.h"
#include "store/manifest.h"
#include "store/shard.h"
#include "world/files.h"

namespace holdfast::store {

/// Name of the manifest inside a checkpoint's directory.
inline constexpr const char* kManifestFile = "manifest.json";

/// Checks the manifest alone. Errors: as verify_checkpoint.
Result<Manifest> read_manifest(world::FileSource& files, const std::string& dir);

/// Every `count`th file from `index` on: what one of several readers takes upon itself.
struct FileShare {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// Reads and checks every byte of its share of the files. Errors: NotFound (no manifest: never committed), Corrupt (a
/// damaged, missing or swapped file), BadInput (a manifest of another version), Unavailable.
Result<Manifest> verify_checkpoint(world::FileSource& files, const std::string& dir, unsigned threads = 1,
                                   FileShare share = {});

/// One tensor of a loaded checkpoint; its bytes belong to the checkpoint.
struct LoadedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  BytesView bytes;
};

class LoadedCheckpoint {
 public:
  LoadedCheckpoint(Manifest manifest, std::vector<LoadedTensors> shards, std::vector<LoadedTensor> tensors)
      : manifest_(std::move(manifest)), shards_(std::move(shards)), tensors_(std::move(tensors)) {}
  const Manifest& manifest() const { return manifest_; }
  const std::string& structure() const { return manifest_.structure; }
  /// By shard and place. Valid as long as this object (also after a move of it).
  const std::vector<LoadedTensor>& tensors() const { return tensors_; }

 private:
  Manifest manifest_;
  std::vector<LoadedTensors> shards_;
  std::vector<LoadedTensor> tensors_;
};

/// The whole checkpoint in memory, every byte checked before it is handed out. Blocks for reading it. Errors: as
/// verify_checkpoint; BadInput where two shards hold a tensor of the same name.
Result<LoadedCheckpoint> load_checkpoint(world::FileSource& files, const std::string& dir, unsigned threads = 1);

}  // namespace holdfast::store
