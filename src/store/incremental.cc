#include "store/incremental.h"

#include "store/kept.h"
#include "store/row_parts.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

/// Small enough to find what stays, large enough that a terabyte has not too many.
constexpr std::uint64_t kPartBytes = std::uint64_t{16} << 20U;

std::string place_of(const KeptFile& file) { return file.checkpoint + "/" + file.file; }

std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::vector<Digest> compute_digests(std::span<const TensorData> tensors, unsigned threads) {
  std::vector<Digest> digests(tensors.size());
  world::parallel_for(threads, tensors.size(), [&](std::size_t i) {
    digests[i] = digest_of(tensors[i].dtype, tensors[i].shape, tensors[i].bytes);
  });
  return digests;
}

/// Which of `tensors` may stay where they are: the same bytes, in a file of which at least half stays.
std::vector<bool> unchanged(std::span<const TensorData> tensors, const std::vector<Digest>& digests,
                            const KnownParts& known) {
  std::vector<bool> same(tensors.size());
  std::vector<std::uint64_t> used(known.files.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto part = known.parts.find(tensors[i].name);
    same[i] = part != known.parts.end() && part->second.digest == digests[i];
    if (same[i]) used[part->second.file] += part->second.bytes;
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!same[i]) continue;
    const std::size_t file = known.parts.at(tensors[i].name).file;
    same[i] = used[file] >= known.files[file].bytes / 2;
  }
  return same;
}

/// What a shard is made of, once it is known what stays.
struct ShardParts {
  std::vector<TensorData> changed;
  Slices slices;  ///< of `changed`
  Digests digests;
  KeptNames kept;
  KnownParts known;
};

ShardParts sort_out(const RowParts& all, const std::vector<Digest>& digests, const KnownParts& known,
                    const KeptFile& own) {
  ShardParts parts;
  const std::vector<bool> same = unchanged(all.tensors, digests, known);
  std::map<std::size_t, std::size_t> places;  // of a known file among the new ones
  parts.known.files.push_back(own);
  for (std::size_t i = 0; i < all.tensors.size(); ++i) {
    const TensorData& tensor = all.tensors[i];
    if (same[i]) {
      KnownParts::Part part = known.parts.at(tensor.name);
      const auto [place, is_new] = places.try_emplace(part.file, parts.known.files.size());
      if (is_new) parts.known.files.push_back(known.files[part.file]);
      parts.kept[place_of(known.files[part.file])].insert(tensor.name);
      part.file = place->second;
      parts.known.parts.emplace(tensor.name, part);
      continue;
    }
    parts.changed.push_back(tensor);
    parts.digests.emplace(tensor.name, digests[i]);
    parts.known.parts.emplace(tensor.name, KnownParts::Part{digests[i], tensor.bytes.size(), 0});
    if (const auto slice = all.slices.find(tensor.name); slice != all.slices.end()) parts.slices.insert(*slice);
  }
  return parts;
}

}  // namespace

Result<KnownParts> KnownParts::of(const OpenCheckpoint& checkpoint) {
  KnownParts known;
  for (const OpenCheckpoint::File& file : checkpoint.files()) {
    const SafetensorsHeader& header = file.shard.about().header;
    const Digests digests = TRY(digests_of(header), file.shard.path());
    if (digests.empty()) continue;
    for (const TensorInfo& tensor : header.tensors) {
      const auto digest = digests.find(tensor.name);
      if (digest == digests.end() || (file.names && !file.names->contains(tensor.name))) continue;
      known.parts.try_emplace(tensor.name, Part{digest->second, tensor.end - tensor.begin, known.files.size()});
    }
    known.files.push_back(file.where);
  }
  return known;
}

Result<IncrementalShard> write_incremental_shard(world::FileTree& files, const std::string& dir, Rank writer,
                                                 std::uint32_t writers, std::span<const TensorData> tensors,
                                                 const std::map<std::string, std::string>& metadata,
                                                 const KnownParts& known) {
  const std::string doing = "write a shard of " + dir;
  const SafetensorsHeader laid_out = TRY(lay_out(tensors, metadata), doing);
  const Slices slices = TRY(slices_of(laid_out), doing);
  const RowParts all = TRY(cut_rows(tensors, slices, kPartBytes), doing);
  KeptFile own{last_part(dir), shard_file_name(writer, writers), 0, 0};
  ShardParts parts = sort_out(all, compute_digests(all.tensors, files.threads()), known, own);
  std::map<std::string, std::string> about = metadata;
  about.erase(kSlicesKey);
  if (!parts.slices.empty()) about[kSlicesKey] = TRY(format_slices(parts.slices), doing);
  about[kDigestsKey] = format_digests(parts.digests);
  if (!parts.kept.empty()) about[kKeptKey] = TRY(format_kept(parts.kept), doing);
  IncrementalShard shard;
  shard.record = TRY(write_shard(files, dir, writer, writers, parts.changed, about), doing);
  shard.known = std::move(parts.known);
  shard.record.kept.assign(shard.known.files.begin() + 1, shard.known.files.end());
  shard.known.files.front().bytes = shard.record.bytes;
  shard.known.files.front().header_crc = shard.record.header_crc;
  return shard;
}

}  // namespace holdfast::store
