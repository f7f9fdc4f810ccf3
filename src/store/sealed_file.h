// Sealed tensor files: encrypted, compressed, or both. Who has the key reads one as the plain file it was made of, who
// has not sees a safetensors file with one tensor of bytes. Format: docs/format-sealed.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/seal_key.h"
#include "world/disk.h"
#include "world/files.h"
#include "world/random.h"

namespace holdfast::store {

/// How files are sealed that are written. Neither: not at all.
struct Sealing {
  std::optional<SealKey> key;  ///< encrypts
  int level = 0;               ///< compresses: 1 (fast) to kCompressionLevelMax
  bool any() const { return key || level > 0; }
};

constexpr int kSealLevelDefault = 1;

/// Files of `files`, which outlives this object; those that are sealed read as the plain ones they were made of, and no
/// byte of them is handed out before it is checked. Where a key is given, one that is not encrypted is refused: anybody
/// could have put it there. Errors of `open`, besides those of `files`: BadInput (a key is missing, wrong or not
/// needed; broken layout), Corrupt.
class UnsealedFiles final : public world::FileSource {
 public:
  UnsealedFiles(world::FileSource& files, std::optional<SealKey> key) : files_(files), key_(std::move(key)) {}
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& name) override;

 private:
  world::FileSource& files_;
  std::optional<SealKey> key_;
};

/// Plain files in, sealed files written to `files`, which outlives this object and its files, as does `random`. The
/// first `head` bytes of a file's pieces, its header, become chunks of their own.
class SealedFiles final : public world::FileTarget {
 public:
  SealedFiles(world::FileTarget& files, Sealing how, world::Random& random)
      : files_(files), how_(std::move(how)), random_(random) {}
  std::uint64_t piece_bytes(const std::string& name, std::uint64_t total) const override {
    return files_.piece_bytes(name, total);
  }
  unsigned writes_at_a_time(const std::string& name, unsigned threads) const override {
    return files_.writes_at_a_time(name, threads);
  }
  Result<std::unique_ptr<world::NewFile>> begin(const std::string& name, const std::string& aside,
                                                const world::Pieces& pieces) override;

 private:
  world::FileTarget& files_;
  Sealing how_;
  world::Random& random_;
};

/// What can be told of a sealed file without a key.
struct SealedAbout {
  bool encrypted = false;
  bool compressed = false;
  std::vector<std::string> keys;  ///< the ids of those that open it
  std::uint64_t plain_bytes = 0;
};

/// None: the file is not sealed. Errors: NotFound, BadInput, Corrupt, Unavailable.
Result<std::optional<SealedAbout>> read_sealed_about(world::FileSource& files, const std::string& path);

/// From now on `fresh` opens the file, and `old` no longer does. In place, its data is not touched; a crash at any
/// moment leaves a file that one of them opens, or both: then the same call finishes the work. Errors: BadInput (`old`
/// does not open it; no slot is free), Corrupt, Unavailable.
Status rekey_sealed_file(world::Disk& disk, const std::string& path, const SealKey& old, const SealKey& fresh,
                         world::Random& random);

}  // namespace holdfast::store
