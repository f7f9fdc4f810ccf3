// Where the commands of `holdfast ckpt` find checkpoints, and what they do with them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/progress.h"
#include "app/tensors_commands.h"
#include "store/checkpoint_dir.h"
#include "world/locations.h"
#include "world/world.h"

namespace holdfast::app {

struct ManifestSize {
  std::uint64_t own = 0;     ///< bytes of its shards
  std::uint64_t shared = 0;  ///< bytes of the older files that it needs
};
ManifestSize size_of(const store::Manifest& manifest);

constexpr std::size_t kKeepAll = SIZE_MAX;

struct CopiedCheckpoint {
  std::string from, to;
  std::uint64_t bytes = 0;
};

class CkptPlace {
 public:
  CkptPlace();

  /// Errors: BadInput (settings for URLs that are none).
  Result<std::unique_ptr<store::CheckpointDir>> directory(const std::string& name, std::size_t keep);
  /// The directories of the committed checkpoints there, newest first, or of the one that `name` is. Errors: NotFound
  /// (none, or none of that step).
  Result<std::vector<std::string>> checkpoints(const std::string& name, std::optional<Step> step);
  /// Reads every byte, with progress.
  Result<store::Manifest> verify(const std::string& dir);
  /// The newest that verifies, or the one of `step`, to another directory under its own name.
  Result<CopiedCheckpoint> copy(const std::string& from, const std::string& to, std::optional<Step> step);
  /// That of `step` under a new epoch of the same directory.
  Result<CopiedCheckpoint> restore(const std::string& name, Step step);

 private:
  Result<CopiedCheckpoint> copy_to(const std::string& from, store::CheckpointDir& to, std::optional<Epoch> epoch);

  std::unique_ptr<world::World> world_;
  Result<world::RemoteSettings> settings_;
  world::Locations files_;
  Progress progress_;
  CountedFiles counted_;
};

}  // namespace holdfast::app
