#include "store/tensor_file_stream.h"

#include <algorithm>
#include <unordered_map>

#include "store/aligned_bytes.h"
#include "store/checksums.h"
#include "store/crc32c.h"
#include "store/piece_stream.h"

namespace holdfast::store {
namespace {

/// Sums chunks of a data buffer that comes in parts of any size.
class ChunkSummer {
 public:
  explicit ChunkSummer(std::vector<std::uint32_t>& chunks) : chunks_(chunks) {}
  void add(BytesView bytes) {
    while (!bytes.empty()) {
      std::uint32_t& chunk = chunks_[at_ / kChecksumChunkBytes];
      const std::size_t taken = std::min<std::uint64_t>(bytes.size(), kChecksumChunkBytes - at_ % kChecksumChunkBytes);
      chunk = crc32c(bytes.first(taken), chunk);
      at_ += taken;
      bytes = bytes.subspan(taken);
    }
  }

 private:
  std::vector<std::uint32_t>& chunks_;
  std::uint64_t at_ = 0;
};

Status write_data(PieceStream& stream, const SafetensorsHeader& header, std::span<const TensorInfo> tensors,
                  const FillTensor& fill, std::vector<std::uint32_t>& chunks) {
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < tensors.size(); ++i) index.emplace(tensors[i].name, i);
  ChunkSummer summer(chunks);
  for (const TensorInfo& tensor : header.tensors) {
    AlignedBytes memory(tensor.end - tensor.begin);
    if (Status filled = fill(index.at(tensor.name), memory.all()); !filled) return filled;
    summer.add(memory.all());
    if (Status written = stream.append(memory.all()); !written) return written;
  }
  return Ok{};
}

Status stream_file(world::FileTarget& files, const std::string& path, std::span<const TensorInfo> tensors,
                   std::map<std::string, std::string> metadata, const FillTensor& fill, const std::string& aside) {
  const std::vector<TensorInfo> infos(tensors.begin(), tensors.end());
  const SafetensorsHeader bare = TRY(lay_out_tensors(infos, {}), "header");
  Checksums checksums{0, std::vector<std::uint32_t>(chunk_count(bare.data_bytes()))};
  metadata[kChecksumsKey] = format_checksums(checksums);
  SafetensorsHeader header = TRY(lay_out_tensors(infos, std::move(metadata)), "header");
  const world::Pieces pieces = {
      .head = header.data_begin, .piece = files.piece_bytes(header.file_bytes()), .total = header.file_bytes()};
  const auto file = TRY(files.begin(path, aside, pieces), "create");
  PieceStream stream(*file, pieces, /*first_last=*/true);
  TRY(stream.append(Bytes(header.data_begin)), "write");
  if (Status done = write_data(stream, header, tensors, fill, checksums.chunks); !done) return done;
  const Bytes blank = TRY(format_safetensors_header(header), "header");
  std::string& text = header.metadata[kChecksumsKey];
  checksums.header = TRY(header_checksum(blank, text), "header");
  text = format_checksums(checksums);
  const Bytes sealed = TRY(format_safetensors_header(header), "header");
  std::copy(sealed.begin(), sealed.end(), stream.first().begin());
  TRY(stream.finish(), "write");
  return file->commit();
}

}  // namespace

Status stream_tensor_file(world::FileTarget& files, const std::string& path, std::span<const TensorInfo> tensors,
                          std::map<std::string, std::string> metadata, const FillTensor& fill,
                          const std::string& aside) {
  TRY(stream_file(files, path, tensors, std::move(metadata), fill, aside), "save " + path);
  return Ok{};
}

}  // namespace holdfast::store
