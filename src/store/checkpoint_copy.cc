#include "store/checkpoint_copy.h"

#include <algorithm>

#include "store/kept.h"
#include "store/model_copy.h"
#include "store/slices.h"

namespace holdfast::store {
namespace {

using Files = std::vector<OpenCheckpoint::File>;

/// Where the bytes of a tensor are.
struct Source {
  const OpenTensorFile* file = nullptr;
  std::uint64_t begin = 0;
};

/// A shard together with what it left in older files.
struct WholeShard {
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
  std::map<std::string, Source> sources;  ///< by tensor
};

/// The tensors of `file` that count, all where `names` is null.
Status add(const OpenTensorFile& file, const std::set<std::string>* names, WholeShard& whole, Slices& slices,
           Digests& digests) {
  const SafetensorsHeader& header = file.about().header;
  const Slices its_slices = TRY(slices_of(header), file.path());
  const Digests its_digests = TRY(digests_of(header), file.path());
  for (const TensorInfo& tensor : header.tensors) {
    if (names != nullptr && !names->contains(tensor.name)) continue;
    if (!whole.sources.try_emplace(tensor.name, Source{&file, tensor.begin}).second) continue;
    whole.tensors.push_back(tensor);
    if (const auto slice = its_slices.find(tensor.name); slice != its_slices.end()) slices.insert(*slice);
    if (const auto digest = its_digests.find(tensor.name); digest != its_digests.end()) digests.insert(*digest);
  }
  return Ok{};
}

Result<WholeShard> put_together(const Files& files, const OpenTensorFile& shard, const KeptNames& kept) {
  WholeShard whole;
  whole.metadata = shard.about().header.metadata;
  Slices slices;
  Digests digests;
  TRY(add(shard, nullptr, whole, slices, digests), "copy");
  for (const auto& [place, names] : kept) {
    const auto is_it = [&place = place](const OpenCheckpoint::File& file) {
      return file.names && file.where.checkpoint + "/" + file.where.file == place;
    };
    const auto file = std::find_if(files.begin(), files.end(), is_it);
    if (file == files.end()) return Error(Code::Corrupt, shard.path() + ": " + place + " is not open");
    TRY(add(file->shard, &names, whole, slices, digests), "copy");
  }
  whole.metadata.erase(kKeptKey);
  if (!slices.empty()) whole.metadata[kSlicesKey] = TRY(format_slices(slices), "copy");
  whole.metadata[kDigestsKey] = format_digests(digests);
  return whole;
}

/// Fills `out` with the new file's data from `begin` on.
Status read_data(const WholeShard& whole, const SafetensorsHeader& header, std::uint64_t begin,
                 std::span<std::byte> out) {
  const std::uint64_t end = begin + out.size();
  const auto first = std::partition_point(header.tensors.begin(), header.tensors.end(),
                                          [&](const TensorInfo& tensor) { return tensor.end <= begin; });
  std::map<const OpenTensorFile*, std::vector<DataRange>> ranges;
  for (auto tensor = first; tensor != header.tensors.end() && tensor->begin < end; ++tensor) {
    const std::uint64_t from = std::max(begin, tensor->begin), to = std::min(end, tensor->end);
    if (from >= to) continue;
    const Source& source = whole.sources.at(tensor->name);
    ranges[source.file].push_back({source.begin + (from - tensor->begin), out.subspan(from - begin, to - from)});
  }
  for (auto& [file, of_file] : ranges) TRY(file->read(std::move(of_file)), "copy");
  return Ok{};
}

Result<ShardRecord> copy_shard(const Files& files, const OpenTensorFile& shard, const std::string& name,
                               world::FileTree& target, const std::string& dir, unsigned threads) {
  const std::string path = dir + "/" + name;
  const KeptNames kept = TRY(kept_names_of(shard.about().header), shard.path());
  if (kept.empty()) {
    TRY(copy_tensor_file(shard, target, path, threads), "copy");
  } else {
    const WholeShard whole = TRY(put_together(files, shard, kept), "copy");
    const auto data = [&whole](const SafetensorsHeader& header, std::uint64_t begin, std::span<std::byte> out) {
      return read_data(whole, header, begin, out);
    };
    TRY(write_tensor_file(target, path, whole.tensors, whole.metadata, data, threads), "copy");
  }
  const TensorFile written = TRY(read_tensor_file(target, path), "copy");
  return ShardRecord{name, written.header.file_bytes(), written.header_crc, {}};
}

}  // namespace

Status copy_checkpoint(const OpenCheckpoint& from, world::FileTree& files, CheckpointDir& to, CheckpointId id,
                       unsigned threads) {
  const std::string dir = to.checkpoint_path(id);
  const std::string doing = "copy to " + dir;
  if (files.exists(dir + "/" + kManifestFile)) return Error(Code::Conflict, dir + ": a checkpoint is here already");
  TRY(files.make_dirs(dir), doing);
  Manifest manifest = from.manifest();
  manifest.epoch = id.epoch;
  manifest.step = id.step;
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    const std::string name = manifest.shards[i].file;
    manifest.shards[i] = TRY(copy_shard(from.files(), from.files()[i].shard, name, files, dir, threads), doing);
  }
  return to.commit(manifest);
}

}  // namespace holdfast::store
