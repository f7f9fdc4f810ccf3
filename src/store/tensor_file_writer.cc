// Writing a tensor file: one pass that hashes, one that writes.
#include <algorithm>

#include "base/check.h"
#include "store/crc32c.h"
#include "store/tensor_file.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

using Ordered = std::vector<const TensorData*>;

/// The checksum of bytes [begin, end) of the data buffer.
std::uint32_t checksum(const SafetensorsHeader& header, const Ordered& tensors, std::uint64_t begin,
                       std::uint64_t end) {
  const auto first = std::partition_point(header.tensors.begin(), header.tensors.end(),
                                          [&](const TensorInfo& tensor) { return tensor.end <= begin; });
  std::uint32_t crc = 0;
  for (auto tensor = first; tensor != header.tensors.end() && tensor->begin < end; ++tensor) {
    const std::uint64_t from = std::max(begin, tensor->begin);
    const std::uint64_t to = std::min(end, tensor->end);
    if (from >= to) continue;
    const TensorData& data = *tensors[static_cast<std::size_t>(tensor - header.tensors.begin())];
    crc = crc32c(data.bytes.subspan(from - tensor->begin, to - from), crc);
  }
  return crc;
}

Checksums checksums_of(const SafetensorsHeader& header, const Ordered& tensors, unsigned threads) {
  Checksums checksums;
  checksums.chunks.resize(chunk_count(header.data_bytes()));
  world::parallel_for(threads, checksums.chunks.size(), [&](std::size_t i) {
    const std::uint64_t begin = i * kChecksumChunkBytes;
    const std::uint64_t end = std::min(begin + kChecksumChunkBytes, header.data_bytes());
    checksums.chunks[i] = checksum(header, tensors, begin, end);
  });
  return checksums;
}

/// The bytes before the data buffer, with the checksums in place of the zeros that held their room.
Result<Bytes> sealed_prefix(SafetensorsHeader& header, Checksums checksums) {
  std::string& text = header.metadata[kChecksumsKey];
  const Bytes blank = TRY(format_safetensors_header(header), "header");
  checksums.header = TRY(header_checksum(blank, text), "header");
  text = format_checksums(checksums);
  return format_safetensors_header(header);
}

Status write_aside(world::Disk& disk, const std::string& path, BytesView prefix, const Ordered& tensors) {
  const std::unique_ptr<world::WritableFile> file = TRY(disk.create(path), "create");
  TRY(file->append(prefix), "write the header");
  for (const TensorData* tensor : tensors) TRY(file->append(tensor->bytes), "write tensor " + tensor->name);
  return file->sync();
}

Status save(world::Disk& disk, const std::string& path, std::span<const TensorData> tensors,
            std::map<std::string, std::string> metadata, unsigned threads, const std::string& aside) {
  // First without checksums: how many there are depends on what all tensors take.
  if (metadata.contains(kChecksumsKey)) {
    return Error(Code::BadInput, std::string("the metadata key ") + kChecksumsKey + " is taken");
  }
  const std::uint64_t data_bytes = TRY(lay_out(tensors, {}), "header")
  .data_bytes();
  metadata[kChecksumsKey] = format_checksums({0, std::vector<std::uint32_t>(chunk_count(data_bytes))});
  SafetensorsHeader header = TRY(lay_out(tensors, std::move(metadata)), "header");
  const Ordered ordered = TRY(in_order(header, tensors), "header");
  const Bytes prefix = TRY(sealed_prefix(header, checksums_of(header, ordered, threads)), "header");
  Status done = write_aside(disk, path + aside, prefix, ordered);
  if (done) done = disk.rename(path + aside, path);
  if (!done) {
    (void)disk.remove(path + aside);  // best effort: the error that counts is the first one
    return done;
  }
  return disk.sync_dir(world::parent_of(path));
}

}  // namespace

Status save_tensor_file(world::Disk& disk, const std::string& path, std::span<const TensorData> tensors,
                        std::map<std::string, std::string> metadata, unsigned threads, const std::string& aside) {
  TRY(save(disk, path, tensors, std::move(metadata), threads, aside), "save " + path);
  return Ok{};
}

}  // namespace holdfast::store
