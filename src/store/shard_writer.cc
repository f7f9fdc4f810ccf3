// Writing a shard: one pass over the tensors that hashes each chunk while it is hot and appends it.
#include <algorithm>

#include "base/check.h"
#include "store/crc32c.h"
#include "store/shard.h"

namespace holdfast::store {
namespace {

/// Cuts what it is given into chunks of the file, whole chunks without a copy.
class ChunkedWriter {
 public:
  explicit ChunkedWriter(world::WritableFile& file) : file_(file) {}

  Status append(BytesView bytes) {
    while (!bytes.empty()) {
      if (pending_.empty() && bytes.size() >= kChunkBytes) {
        TRY(write_chunk(bytes.first(kChunkBytes)), "append");
        bytes = bytes.subspan(kChunkBytes);
        continue;
      }
      const BytesView part = bytes.first(std::min<std::size_t>(bytes.size(), kChunkBytes - pending_.size()));
      pending_.insert(pending_.end(), part.begin(), part.end());
      bytes = bytes.subspan(part.size());
      if (pending_.size() == kChunkBytes) TRY(flush(), "append");
    }
    return Ok{};
  }

  Status flush() {
    if (pending_.empty()) return Ok{};
    Status written = write_chunk(pending_);
    pending_.clear();
    return written;
  }

  std::uint64_t bytes() const { return bytes_; }
  std::vector<std::uint32_t> take_crcs() && { return std::move(crcs_); }

 private:
  Status write_chunk(BytesView chunk) {
    crcs_.push_back(crc32c(chunk));
    bytes_ += chunk.size();
    return file_.append(chunk);
  }

  world::WritableFile& file_;
  Bytes pending_;
  std::vector<std::uint32_t> crcs_;
  std::uint64_t bytes_ = 0;
};

Result<ShardRecord> write_aside(world::Disk& disk, const std::string& path, BytesView header,
                                std::span<const TensorData* const> tensors) {
  const std::unique_ptr<world::WritableFile> file = TRY(disk.create(path), "create");
  ChunkedWriter writer(*file);
  TRY(writer.append(header), "write the header");
  for (const TensorData* tensor : tensors) TRY(writer.append(tensor->bytes), "write tensor " + tensor->name);
  TRY(writer.flush(), "write");
  TRY(file->sync(), "sync");
  ShardRecord record;
  record.bytes = writer.bytes();
  record.chunk_crcs = std::move(writer).take_crcs();
  return record;
}

}  // namespace

std::string shard_file_name(Rank writer, std::uint32_t writers) {
  return "shard-" + std::to_string(writer) + "-of-" + std::to_string(writers) + ".safetensors";
}

Result<ShardRecord> write_shard(world::Disk& disk, const std::string& dir, Rank writer, std::uint32_t writers,
                                std::span<const TensorData> tensors,
                                const std::map<std::string, std::string>& metadata) {
  CHECK(writer < writers && writers <= kShardsMax);
  const std::string file = shard_file_name(writer, writers);
  const std::string doing = "write " + dir + "/" + file;
  const SafetensorsHeader header = TRY(lay_out(tensors, metadata), doing);
  const std::vector<const TensorData*> ordered = TRY(in_order(header, tensors), doing);
  const Bytes prefix = TRY(format_safetensors_header(header), doing);

  TRY(disk.make_dirs(dir), doing);
  const std::string aside = dir + "/" + file + ".partial";
  Result<ShardRecord> record = write_aside(disk, aside, prefix, ordered);
  const Status named = record ? disk.rename(aside, dir + "/" + file) : Status(record.error());
  if (!named) {
    // Best effort: on a full disk the half-written file would take the room that the next try needs.
    (void)disk.remove(aside);
    return Error(named.error()).in(doing);
  }
  TRY(disk.sync_dir(dir), doing);
  record->file = file;
  return record;
}

}  // namespace holdfast::store
