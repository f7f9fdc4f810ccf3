// A committed checkpoint, open for reading any box of any tensor: into whatever layout the reader has.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/checkpoint.h"
#include "store/tensor_parts.h"

namespace holdfast::store {

struct WantedBox {
  std::string name;
  Box box;
  std::span<std::byte> out;  ///< of the box's size, row-major
};

struct ReadTally {
  std::uint64_t bytes = 0;    ///< read of the tensors' data
  std::uint64_t checked = 0;  ///< of them, in chunks that were read whole
};

class OpenCheckpoint {
 public:
  /// Reads the manifest and the headers of all shards, and checks them. `files` outlives this object. Errors: as
  /// verify_checkpoint, but for the tensors' own bytes.
  static Result<OpenCheckpoint> open(world::FileSource& files, const std::string& dir);

  const Manifest& manifest() const { return manifest_; }
  const WholeTensors& tensors() const { return tensors_; }

  struct File {
    OpenTensorFile shard;
    KeptFile where;
    std::optional<std::set<std::string>> names;  ///< of an older checkpoint's: the tensors that count
  };
  /// The shards, and those of older checkpoints that hold what they leave out.
  const std::vector<File>& files() const { return files_; }

  /// Fills all boxes, reading only their bytes. Chunks that lie in them whole are checked; verify_checkpoint checks
  /// all. Thread-safe. Errors: BadInput (no such tensor or box, a span of another size, elements that no shard holds),
  /// Corrupt, Unavailable.
  Result<ReadTally> read(std::span<const WantedBox> boxes, unsigned threads) const;

 private:
  OpenCheckpoint(std::string dir, Manifest manifest, std::vector<File> files, WholeTensors tensors)
      : dir_(std::move(dir)), manifest_(std::move(manifest)), files_(std::move(files)), tensors_(std::move(tensors)) {}

  std::string dir_;
  Manifest manifest_;
  std::vector<File> files_;
  WholeTensors tensors_;
};

}  // namespace holdfast::store
