// Reading a shard: nothing is believed before its chunk's checksum matches.
#include <algorithm>

#include "store/crc32c.h"
#include "store/shard.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kBlockAlignment = 64;

Error damaged(const std::string& what) {
  return {Code::Corrupt, what + "; restore the file from a copy or resume from an older checkpoint"};
}

/// Opens the shard's file, which has the size its record promises.
Result<std::unique_ptr<world::ReadableFile>> open_shard(world::Disk& disk, const std::string& path,
                                                        const ShardRecord& record) {
  const std::uint64_t chunks =
      record.chunk_bytes == 0 ? 0 : (record.bytes + record.chunk_bytes - 1) / record.chunk_bytes;
  if (record.chunk_bytes == 0 || record.chunk_bytes > kChunkBytes || chunks != record.chunk_crcs.size()) {
    return Error(Code::BadInput, "its record names " + std::to_string(record.chunk_crcs.size()) + " chunks of " +
                                     std::to_string(record.chunk_bytes) + " bytes for " + std::to_string(record.bytes) +
                                     " bytes");
  }
  std::unique_ptr<world::ReadableFile> file = TRY(disk.open(path), "open");
  if (file->size() != record.bytes) {
    return damaged("the file has " + std::to_string(file->size()) + " bytes, its manifest says " +
                   std::to_string(record.bytes));
  }
  return file;
}

/// Fills `out` with chunk `index` of the file and checks it.
Status read_chunk(world::ReadableFile& file, const ShardRecord& record, std::size_t index, std::span<std::byte> out) {
  const std::uint64_t begin = index * record.chunk_bytes;
  TRY(file.read_at(begin, out), "read at byte " + std::to_string(begin));
  if (crc32c(out) != record.chunk_crcs[index]) {
    return damaged("chunk " + std::to_string(index) + " (bytes " + std::to_string(begin) + " to " +
                   std::to_string(begin + out.size()) + ") does not match its checksum");
  }
  return Ok{};
}

std::size_t chunk_size(const ShardRecord& record, std::size_t index) {
  return static_cast<std::size_t>(std::min(record.chunk_bytes, record.bytes - index * record.chunk_bytes));
}

/// Bytes to leave free before the file's content, so that its data buffer is aligned. The length of the header is not
/// verified at this point: a wrong one only costs the alignment, and is found with its chunk.
Result<std::size_t> lead_bytes(world::ReadableFile& file, const ShardRecord& record) {
  std::byte first[sizeof(std::uint64_t)] = {};
  if (record.bytes < sizeof first) return std::size_t{0};
  TRY(file.read_at(0, first), "read the header's length");
  const Result<std::uint64_t> data_begin = safetensors_prefix_bytes(first, record.bytes);
  if (!data_begin) return std::size_t{0};
  return static_cast<std::size_t>((kBlockAlignment - *data_begin % kBlockAlignment) % kBlockAlignment);
}

Result<LoadedShard> read_whole(world::ReadableFile& file, const ShardRecord& record) {
  const std::size_t lead = TRY(lead_bytes(file, record), "place");
  AlignedBytes block(lead + static_cast<std::size_t>(record.bytes));
  const std::span<std::byte> content = block.all().subspan(lead);
  std::size_t place = 0;
  for (std::size_t i = 0; i < record.chunk_crcs.size(); ++i) {
    const std::size_t size = chunk_size(record, i);
    TRY(read_chunk(file, record, i, content.subspan(place, size)), "verify");
    place += size;
  }
  SafetensorsHeader header = TRY(parse_safetensors_header(content, record.bytes), "header");
  const std::size_t data_place = lead + static_cast<std::size_t>(header.data_begin);
  return LoadedShard(std::move(header), std::move(block), data_place);
}

}  // namespace

Status verify_shard(world::Disk& disk, const std::string& dir, const ShardRecord& record) {
  const std::string path = dir + "/" + record.file;
  const std::unique_ptr<world::ReadableFile> file = TRY(open_shard(disk, path, record), path);
  Bytes chunk;
  for (std::size_t i = 0; i < record.chunk_crcs.size(); ++i) {
    chunk.resize(chunk_size(record, i));
    TRY(read_chunk(*file, record, i, chunk), path);
  }
  return Ok{};
}

Result<LoadedShard> load_shard(world::Disk& disk, const std::string& dir, const ShardRecord& record) {
  const std::string path = dir + "/" + record.file;
  const std::unique_ptr<world::ReadableFile> file = TRY(open_shard(disk, path, record), path);
  return TRY(read_whole(*file, record), path);
}

}  // namespace holdfast::store
