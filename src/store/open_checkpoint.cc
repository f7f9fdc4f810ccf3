#include "store/open_checkpoint.h"

#include <algorithm>

#include "store/dtype.h"
#include "store/kept.h"

namespace holdfast::store {

namespace {

/// Opens the files of older checkpoints that `shard` refers to, or adds its names to one that is open already.
Status open_kept(world::FileSource& files, const std::string& root, const ShardRecord& record,
                 const SafetensorsHeader& header, std::vector<OpenCheckpoint::File>& open) {
  const KeptNames kept = TRY(kept_names_of(header), record.file);
  for (const auto& [place, names] : kept) {
    const auto is_place = [&place = place](const KeptFile& file) { return file.checkpoint + "/" + file.file == place; };
    const auto where = std::find_if(record.kept.begin(), record.kept.end(), is_place);
    if (where == record.kept.end()) return Error(Code::Corrupt, record.file + ": the manifest does not name " + place);
    auto there = std::find_if(open.begin(), open.end(), [&](const auto& file) { return file.where == *where; });
    if (there == open.end()) {
      OpenTensorFile shard = TRY(open_shard(files, root + "/" + where->checkpoint, of_older(*where)), "open");
      open.push_back({std::move(shard), *where, std::set<std::string>()});
      there = open.end() - 1;
    }
    if (there->names) there->names->insert(names.begin(), names.end());
  }
  return Ok{};
}

}  // namespace

Result<OpenCheckpoint> OpenCheckpoint::open(world::FileSource& files, const std::string& dir) {
  Manifest manifest = TRY(read_manifest(files, dir), "open " + dir);
  const std::size_t slash = dir.find_last_of('/');
  const std::string root = dir.substr(0, slash), name = dir.substr(slash + 1);
  std::vector<File> open;
  for (const ShardRecord& record : manifest.shards) {
    OpenTensorFile shard = TRY(open_shard(files, dir, record), "open");
    open.push_back({std::move(shard), {name, record.file, record.bytes, record.header_crc}, std::nullopt});
  }
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    const SafetensorsHeader header = open[i].shard.about().header;
    TRY(open_kept(files, root, manifest.shards[i], header, open), dir);
  }
  std::vector<PartsFile> parts;
  for (const File& file : open) {
    parts.push_back({&file.shard.about().header, file.names ? &*file.names : nullptr});
  }
  WholeTensors tensors = TRY(gather_parts(parts), dir);
  return OpenCheckpoint(dir, std::move(manifest), std::move(open), std::move(tensors));
}

Result<ReadTally> OpenCheckpoint::read(std::span<const WantedBox> boxes, unsigned threads) const {
  std::vector<std::vector<DataRange>> ranges(files_.size());
  ReadTally tally;
  for (const WantedBox& wanted : boxes) {
    const std::string doing = dir_ + ": tensor " + wanted.name;
    const auto tensor = tensors_.find(wanted.name);
    if (tensor == tensors_.end()) return Error(Code::BadInput, doing + ": the checkpoint holds no such tensor");
    const std::vector<PartRun> runs = TRY(plan_read(tensor->second, wanted.box), doing);
    const std::uint64_t bytes = TRY(tensor_bytes(tensor->second.dtype, wanted.box.shape), doing);
    if (bytes != wanted.out.size()) {
      return Error(Code::BadInput, doing + ": the box has " + std::to_string(bytes) + " bytes, there is room for " +
                                       std::to_string(wanted.out.size()));
    }
    for (const PartRun& run : runs) ranges[run.file].push_back({run.from, wanted.out.subspan(run.to, run.bytes)});
    tally.bytes += bytes;
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    tally.checked += TRY(files_[i].shard.read_exactly(ranges[i], threads), "read");
  }
  return tally;
}

}  // namespace holdfast::store
