#include "store/open_checkpoint.h"

#include "store/dtype.h"

namespace holdfast::store {

Result<OpenCheckpoint> OpenCheckpoint::open(world::Disk& disk, const std::string& dir) {
  Manifest manifest = TRY(read_manifest(disk, dir), "open " + dir);
  std::vector<OpenTensorFile> shards;
  std::vector<const SafetensorsHeader*> headers;
  for (const ShardRecord& record : manifest.shards) shards.push_back(TRY(open_shard(disk, dir, record), "open"));
  for (const OpenTensorFile& shard : shards) headers.push_back(&shard.about().header);
  WholeTensors tensors = TRY(gather_parts(headers), dir);
  return OpenCheckpoint(dir, std::move(manifest), std::move(shards), std::move(tensors));
}

Result<ReadTally> OpenCheckpoint::read(std::span<const WantedBox> boxes, unsigned threads) const {
  std::vector<std::vector<DataRange>> ranges(shards_.size());
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
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    tally.checked += TRY(shards_[i].read_exactly(ranges[i], threads), "read");
  }
  return tally;
}

}  // namespace holdfast::store
