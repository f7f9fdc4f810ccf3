#include "store/checkpoint.h"

#include <unordered_set>

namespace holdfast::store {
Result<Manifest> read_manifest(world::FileSource& files, const std::string& dir) {
  const std::string path = dir + "/" + kManifestFile;
  const Bytes text = TRY(world::read_file(files, path, kManifestBytesMax), "read the manifest");
  Manifest manifest = TRY(manifest_from_text(as_text(text)), path);
  const std::string name = dir.substr(dir.find_last_of('/') + 1);
  const std::string own = checkpoint_name({manifest.epoch, manifest.step});
  // A directory that people renamed at will is their business; one that claims to be another checkpoint is not.
  if (parse_checkpoint_name(name) && name != own) {
    return Error(Code::Corrupt, path + " belongs to " + own + ": the directory was renamed or the file copied");
  }
  return manifest;
}

Result<Manifest> verify_checkpoint(world::FileSource& files, const std::string& dir, unsigned threads,
                                   FileShare share) {
  Manifest manifest = TRY(read_manifest(files, dir), "verify " + dir);
  const std::string root = dir.substr(0, dir.find_last_of('/'));
  const std::vector<KeptFile> kept = kept_files(manifest);
  const std::size_t shards = manifest.shards.size();
  for (std::size_t i = share.index; i < shards + kept.size(); i += share.count) {
    if (i < shards) {
      TRY(verify_shard(files, dir, manifest.shards[i], threads), "verify");
    } else {
      const KeptFile& older = kept[i - shards];
      TRY(verify_shard(files, root + "/" + older.checkpoint, of_older(older), threads), "verify");
    }
  }
  return manifest;
}

Result<LoadedCheckpoint> load_checkpoint(world::FileSource& files, const std::string& dir, unsigned threads) {
  const std::string doing = "load " + dir;
  Manifest manifest = TRY(read_manifest(files, dir), doing);
  std::vector<LoadedTensors> shards;
  std::vector<LoadedTensor> tensors;
  std::unordered_set<std::string> names;
  for (const ShardRecord& record : manifest.shards) {
    shards.push_back(TRY(load_shard(files, dir, record, threads), doing));
    const LoadedTensors& shard = shards.back();
    for (const TensorInfo& info : shard.tensors) {
      if (!names.insert(info.name).second) {
        return Error(Code::BadInput, doing + ": tensor " + info.name + " is in two shards, the second " + record.file);
      }
      tensors.push_back({info.name, info.dtype, info.shape, shard.bytes(info)});
    }
  }
  return LoadedCheckpoint(std::move(manifest), std::move(shards), std::move(tensors));
}

}  // namespace holdfast::store
