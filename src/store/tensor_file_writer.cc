// Writing a tensor file in one pass: pieces are put together and hashed while they are in cache; the header comes last.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "store/crc32c.h"
#include "store/tensor_file.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

using Ordered = std::vector<const TensorData*>;

/// Writes the pieces of one file. Piece 0, which holds the header, comes last: by then all checksums are known.
class PieceWriter {
 public:
  PieceWriter(world::NewFile& file, const world::Pieces& pieces, SafetensorsHeader& header, const Ordered& tensors)
      : file_(file), pieces_(pieces), header_(header), tensors_(tensors) {
    checksums_.chunks.resize(chunk_count(header.data_bytes()));
  }

  Status write(unsigned threads) {
    std::mutex mutex;
    std::optional<Error> failure;
    std::atomic<bool> failed = false;
    world::parallel_for(threads, pieces_.count() - 1, [&](std::size_t i) {
      if (failed) return;
      Status done = write_piece(i + 1);
      if (done) return;
      failed = true;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(done).error();
    });
    if (failure) return *std::move(failure);
    return write_first();
  }

 private:
  Status write_first() {
    const std::uint64_t head = header_.data_begin;
    AlignedBytes memory(pieces_.end(0));
    fill(memory.all().subspan(head), 0);
    const Bytes prefix = TRY(sealed_prefix(), "header");
    std::copy(prefix.begin(), prefix.end(), memory.all().begin());
    return file_.write(0, memory.all());
  }

  Status write_piece(std::uint64_t index) {
    const std::uint64_t begin = pieces_.begin(index) - header_.data_begin;
    AlignedBytes memory(pieces_.end(index) - pieces_.begin(index));
    fill(memory.all(), begin);
    return file_.write(index, memory.all());
  }

  /// Bytes of the data buffer from `begin` on, which is a chunk's first; hashes each chunk while it is in cache.
  void fill(std::span<std::byte> out, std::uint64_t begin) {
    for (std::uint64_t at = 0; at < out.size(); at += kChecksumChunkBytes) {
      const std::span<std::byte> chunk = out.subspan(at, std::min<std::uint64_t>(kChecksumChunkBytes, out.size() - at));
      gather(chunk, begin + at);
      checksums_.chunks[(begin + at) / kChecksumChunkBytes] = crc32c(chunk);
    }
  }

  void gather(std::span<std::byte> out, std::uint64_t begin) const {
    const std::uint64_t end = begin + out.size();
    const auto first = std::partition_point(header_.tensors.begin(), header_.tensors.end(),
                                            [&](const TensorInfo& tensor) { return tensor.end <= begin; });
    for (auto tensor = first; tensor != header_.tensors.end() && tensor->begin < end; ++tensor) {
      const std::uint64_t from = std::max(begin, tensor->begin);
      const std::uint64_t to = std::min(end, tensor->end);
      if (from >= to) continue;
      const TensorData& data = *tensors_[static_cast<std::size_t>(tensor - header_.tensors.begin())];
      std::memcpy(out.data() + (from - begin), data.bytes.data() + (from - tensor->begin), to - from);
    }
  }

  /// The bytes before the data buffer, with the checksums in place of the zeros that held their room.
  Result<Bytes> sealed_prefix() {
    std::string& text = header_.metadata[kChecksumsKey];
    const Bytes blank = TRY(format_safetensors_header(header_), "header");
    checksums_.header = TRY(header_checksum(blank, text), "header");
    text = format_checksums(checksums_);
    return format_safetensors_header(header_);
  }

  world::NewFile& file_;
  const world::Pieces& pieces_;
  SafetensorsHeader& header_;
  const Ordered& tensors_;
  Checksums checksums_;
};

Status save(world::FileTarget& files, const std::string& path, std::span<const TensorData> tensors,
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
  const world::Pieces pieces = {
      .head = header.data_begin, .piece = files.piece_bytes(path, header.file_bytes()), .total = header.file_bytes()};
  const std::unique_ptr<world::NewFile> file = TRY(files.begin(path, aside, pieces), "create");
  TRY(PieceWriter(*file, pieces, header, ordered).write(threads), "write");
  return file->commit();
}

}  // namespace

Status save_tensor_file(world::FileTarget& files, const std::string& path, std::span<const TensorData> tensors,
                        std::map<std::string, std::string> metadata, unsigned threads, const std::string& aside) {
  TRY(save(files, path, tensors, std::move(metadata), threads, aside), "save " + path);
  return Ok{};
}

}  // namespace holdfast::store
