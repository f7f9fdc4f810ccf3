// For tests: small checkpoints whose every byte follows from their id, and the judge that knows them again.
#pragma once

#include <string>
#include <vector>

#include "store/checkpoint.h"
#include "store/checkpoint_dir.h"
#include "store/shard.h"

namespace holdfast::store {

/// Bytes that differ for every seed.
inline Bytes test_bytes(std::uint64_t seed, std::size_t size) {
  Bytes bytes(size);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::byte& byte : bytes) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    byte = static_cast<std::byte>(state);
  }
  return bytes;
}

/// The checkpoint that belongs to an id.
class TestCheckpoint {
 public:
  explicit TestCheckpoint(CheckpointId id, std::uint32_t writers = 2, std::size_t tensor_bytes = 24)
      : id_(id), writers_(writers) {
    for (Rank writer = 0; writer < writers; ++writer) {
      const std::uint64_t seed = id.epoch * 1'000'003 + static_cast<std::uint64_t>(id.step) * 64 + writer;
      contents_.push_back(test_bytes(seed, tensor_bytes));
      contents_.push_back(test_bytes(seed + 7, 3));
    }
  }

  CheckpointId id() const { return id_; }
  std::string structure() const { return "{\"state of\":\"" + checkpoint_name(id_) + "\"}"; }

  Result<ShardRecord> write(world::FileTree& files, const std::string& dir, Rank writer) const {
    const Bytes& wide = contents_[2 * writer];
    const Bytes& narrow = contents_[2 * writer + 1];
    const std::string prefix = "rank" + std::to_string(writer) + ".";
    const std::vector<TensorData> tensors = {{prefix + "narrow", "U8", {narrow.size()}, narrow},
                                             {prefix + "wide", "F32", {wide.size() / 4}, wide}};
    return write_shard(files, dir, writer, writers_, tensors);
  }

  /// All shards of it, written; what is left is to commit the manifest.
  Result<Manifest> write_shards(world::FileTree& files, const CheckpointDir& dir) const {
    Manifest manifest;
    manifest.run_id = "test";
    manifest.step = id_.step;
    manifest.epoch = id_.epoch;
    manifest.world_size = writers_;
    manifest.structure = structure();
    for (Rank writer = 0; writer < writers_; ++writer) {
      manifest.shards.push_back(TRY(write(files, dir.checkpoint_path(id_), writer), "write"));
    }
    return manifest;
  }

  Status write_and_commit(world::FileTree& files, CheckpointDir& dir) const {
    return dir.commit(TRY(write_shards(files, dir), "test"));
  }

  /// "" where `loaded` is this checkpoint, byte for byte.
  std::string difference(const LoadedCheckpoint& loaded) const {
    if (loaded.manifest().step != id_.step || loaded.manifest().epoch != id_.epoch) return "another checkpoint";
    if (loaded.structure() != structure()) return "another structure: " + loaded.structure();
    if (loaded.tensors().size() != contents_.size()) return std::to_string(loaded.tensors().size()) + " tensors";
    for (std::size_t i = 0; i < contents_.size(); ++i) {
      const LoadedTensor& tensor = loaded.tensors()[i];
      const std::string name = "rank" + std::to_string(i / 2) + (i % 2 == 0 ? ".wide" : ".narrow");
      if (tensor.name != name) return "tensor " + tensor.name + " in place of " + name;
      if (!std::ranges::equal(tensor.bytes, contents_[i])) return "other bytes in " + name;
    }
    return "";
  }

 private:
  CheckpointId id_;
  std::uint32_t writers_;
  std::vector<Bytes> contents_;  ///< by writer: the wide tensor, the narrow one
};

}  // namespace holdfast::store
