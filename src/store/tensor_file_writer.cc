// Writing a tensor file in one pass: pieces are put together and hashed while they are in cache; the header comes last.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "base/crc32c.h"
#include "store/tensor_file.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

using Ordered = std::vector<const TensorData*>;

constexpr std::uint64_t kDataStepBytesMax = std::uint64_t{16} << 20U;  ///< asked of a DataBytes at a time

/// Writes the pieces of one file. Piece 0, which holds the header, comes last: by then all checksums are known.
class PieceWriter {
 public:
  /// Asks for `step` bytes of the data at a time, whole chunks.
  PieceWriter(world::NewFile& file, const world::Pieces& pieces, SafetensorsHeader& header, const DataBytes& data,
              std::uint64_t step)
      : file_(file), pieces_(pieces), header_(header), data_(data), step_(step) {
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

  /// Of a file that is written.
  std::uint32_t header_crc() const { return header_crc_; }

 private:
  Status write_first() {
    const std::uint64_t head = header_.data_begin;
    AlignedBytes memory(pieces_.end(0));
    TRY(fill(memory.all().subspan(head), 0), "data");
    const Bytes prefix = TRY(sealed_prefix(), "header");
    header_crc_ = crc32c(prefix);
    std::copy(prefix.begin(), prefix.end(), memory.all().begin());
    return file_.write(0, memory.all());
  }

  Status write_piece(std::uint64_t index) {
    const std::uint64_t begin = pieces_.begin(index) - header_.data_begin;
    AlignedBytes memory(pieces_.end(index) - pieces_.begin(index));
    TRY(fill(memory.all(), begin), "data");
    return file_.write(index, memory.all());
  }

  /// Bytes of the data buffer from `begin` on, which is a chunk's first; hashes them while they are in cache.
  Status fill(std::span<std::byte> out, std::uint64_t begin) {
    for (std::uint64_t at = 0; at < out.size(); at += step_) {
      const std::span<std::byte> part = out.subspan(at, std::min(step_, out.size() - at));
      if (Status got = data_(header_, begin + at, part); !got) return got;
      for (std::uint64_t chunk = 0; chunk < part.size(); chunk += kChecksumChunkBytes) {
        const BytesView bytes = part.subspan(chunk, std::min(kChecksumChunkBytes, part.size() - chunk));
        checksums_.chunks[(begin + at + chunk) / kChecksumChunkBytes] = crc32c(bytes);
      }
    }
    return Ok{};
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
  const DataBytes& data_;
  std::uint64_t step_;
  Checksums checksums_;
  std::uint32_t header_crc_ = 0;
};

/// From memory.
void gather(const SafetensorsHeader& header, const Ordered& tensors, std::uint64_t begin, std::span<std::byte> out) {
  const std::uint64_t end = begin + out.size();
  const auto first = std::partition_point(header.tensors.begin(), header.tensors.end(),
                                          [&](const TensorInfo& tensor) { return tensor.end <= begin; });
  for (auto tensor = first; tensor != header.tensors.end() && tensor->begin < end; ++tensor) {
    const std::uint64_t from = std::max(begin, tensor->begin);
    const std::uint64_t to = std::min(end, tensor->end);
    if (from >= to) continue;
    const TensorData& data = *tensors[static_cast<std::size_t>(tensor - header.tensors.begin())];
    std::memcpy(out.data() + (from - begin), data.bytes.data() + (from - tensor->begin), to - from);
  }
}

/// Laid out with room for the checksums: how many there are depends on what all tensors take.
Result<SafetensorsHeader> lay_out_file(std::vector<TensorInfo> tensors, std::map<std::string, std::string> metadata) {
  if (metadata.contains(kChecksumsKey)) {
    return Error(Code::BadInput, std::string("the metadata key ") + kChecksumsKey + " is taken");
  }
  const SafetensorsHeader bare = TRY(lay_out_tensors(tensors, {}), "header");
  metadata[kChecksumsKey] = format_checksums({0, std::vector<std::uint32_t>(chunk_count(bare.data_bytes()))});
  return TRY(lay_out_tensors(std::move(tensors), std::move(metadata)), "header");
}

Result<SavedTensorFile> write_file(world::FileTarget& files, const std::string& path, SafetensorsHeader header,
                                   const DataBytes& data, std::uint64_t step, unsigned threads,
                                   const std::string& aside) {
  const world::Pieces pieces = {
      .head = header.data_begin, .piece = files.piece_bytes(path, header.file_bytes()), .total = header.file_bytes()};
  const std::unique_ptr<world::NewFile> file = TRY(files.begin(path, aside, pieces), "create");
  PieceWriter writer(*file, pieces, header, data, step);
  TRY(writer.write(threads), "write");
  TRY(file->commit(), "commit");
  return SavedTensorFile{header.file_bytes(), writer.header_crc()};
}

Result<SavedTensorFile> save(world::FileTarget& files, const std::string& path, std::span<const TensorData> tensors,
                             std::map<std::string, std::string> metadata, unsigned threads, const std::string& aside) {
  std::vector<TensorInfo> infos;
  for (const TensorData& tensor : tensors) infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  const SafetensorsHeader header = TRY(lay_out_file(std::move(infos), std::move(metadata)), "header");
  const Ordered ordered = TRY(in_order(header, tensors), "header");
  const auto from_memory = [&](const SafetensorsHeader& placed, std::uint64_t begin, std::span<std::byte> out) {
    gather(placed, ordered, begin, out);
    return Status(Ok{});
  };
  return write_file(files, path, header, from_memory, kChecksumChunkBytes, threads, aside);
}

}  // namespace

Result<SavedTensorFile> save_tensor_file(world::FileTarget& files, const std::string& path,
                                         std::span<const TensorData> tensors,
                                         std::map<std::string, std::string> metadata, unsigned threads,
                                         const std::string& aside) {
  return TRY(save(files, path, tensors, std::move(metadata), threads, aside), "save " + path);
}

Status write_tensor_file(world::FileTarget& files, const std::string& path, std::vector<TensorInfo> tensors,
                         std::map<std::string, std::string> metadata, const DataBytes& data, unsigned threads,
                         const std::string& aside) {
  const std::string doing = "save " + path;
  SafetensorsHeader header = TRY(lay_out_file(std::move(tensors), std::move(metadata)), doing);
  TRY(write_file(files, path, std::move(header), data, kDataStepBytesMax, threads, aside), doing);
  return Ok{};
}

}  // namespace holdfast::store
