// Writing a tensor file in one pass: pieces are put together and hashed while they are in cache; the header comes last.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "store/tensor_file.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

using Ordered = std::vector<const TensorData*>;

constexpr std::uint64_t kMemoryStepBytes = std::uint64_t{128} << 10U;  ///< stay in a core's cache until they are hashed
constexpr std::uint64_t kDataStepBytesMax = std::uint64_t{16} << 20U;  ///< asked of a DataBytes at a time

/// Writes the pieces of one file. Piece 0, which holds the header, comes last: by then all checksums are known.
class PieceWriter {
 public:
  /// Asks for `step` bytes of the data at a time, whole chunks or an even part of one. `in_place`: the data buffer,
  /// where it lies in memory already; else empty.
  PieceWriter(world::NewFile& file, const world::Pieces& pieces, SafetensorsHeader& header, const DataBytes& data,
              std::uint64_t step, BytesView in_place, std::atomic<std::uint64_t>* written)
      : file_(file),
        pieces_(pieces),
        header_(header),
        data_(data),
        step_(step),
        in_place_(in_place),
        written_(written) {
    checksums_.chunks.resize(chunk_count(header.data_bytes()));
  }

  Status write(unsigned threads) {
    TRY(world::parallel_try(threads, pieces_.count() - 1, [&](std::size_t i) { return write_piece(i + 1); }), "data");
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
    return write_out(0, memory.all());
  }

  Status write_piece(std::uint64_t index) {
    const std::uint64_t begin = pieces_.begin(index) - header_.data_begin;
    const std::uint64_t size = pieces_.end(index) - pieces_.begin(index);
    if (!in_place_.empty()) {
      add_to_checksums(begin, in_place_.subspan(begin, size));
      return write_out(index, in_place_.subspan(begin, size));
    }
    AlignedBytes memory(size);
    TRY(fill(memory.all(), begin), "data");
    return write_out(index, memory.all());
  }

  Status write_out(std::uint64_t index, BytesView bytes) {
    Status done = file_.write(index, bytes);
    if (done && written_ != nullptr) *written_ += bytes.size();
    return done;
  }

  /// Bytes of the data buffer from `begin` on, which is a chunk's first; hashes them while they are in cache.
  Status fill(std::span<std::byte> out, std::uint64_t begin) {
    for (std::uint64_t at = 0; at < out.size(); at += step_) {
      const std::span<std::byte> part = out.subspan(at, std::min(step_, out.size() - at));
      if (Status got = data_(header_, begin + at, part); !got) return got;
      add_to_checksums(begin + at, part);
    }
    return Ok{};
  }

  /// `bytes` begin at `place` of the data buffer, and a chunk's come in order.
  void add_to_checksums(std::uint64_t place, BytesView bytes) {
    while (!bytes.empty()) {
      const std::uint64_t within = place % kChecksumChunkBytes;
      const BytesView part = bytes.first(std::min<std::uint64_t>(kChecksumChunkBytes - within, bytes.size()));
      std::uint32_t& checksum = checksums_.chunks[place / kChecksumChunkBytes];
      checksum = crc32c(part, within == 0 ? 0 : checksum);
      place += part.size();
      bytes = bytes.subspan(part.size());
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
  const DataBytes& data_;
  std::uint64_t step_;
  BytesView in_place_;
  std::atomic<std::uint64_t>* written_;
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

/// The whole data buffer, where the tensors lie in memory as they will in the file; else nothing.
BytesView as_in_file(const SafetensorsHeader& header, const Ordered& tensors) {
  const std::byte* begin = nullptr;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->bytes.empty()) continue;
    if (begin == nullptr) begin = tensors[i]->bytes.data();  // of the first that is not empty, which is the buffer's
    if (tensors[i]->bytes.data() != begin + header.tensors[i].begin) return {};
  }
  return {begin, begin == nullptr ? 0 : header.data_bytes()};
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
                                   const DataBytes& data, std::uint64_t step, BytesView in_place, unsigned threads,
                                   const std::string& aside, std::atomic<std::uint64_t>* written) {
  const world::Pieces pieces = {
      .head = header.data_begin, .piece = files.piece_bytes(path, header.file_bytes()), .total = header.file_bytes()};
  const std::unique_ptr<world::NewFile> file = TRY(files.begin(path, aside, pieces), "create");
  PieceWriter writer(*file, pieces, header, data, step, in_place, written);
  TRY(writer.write(files.writes_at_a_time(path, threads)), "write");
  TRY(file->commit(), "commit");
  return SavedTensorFile{header.file_bytes(), writer.header_crc()};
}

Result<SavedTensorFile> save(world::FileTarget& files, const std::string& path, std::span<const TensorData> tensors,
                             std::map<std::string, std::string> metadata, unsigned threads, const std::string& aside,
                             std::atomic<std::uint64_t>* written) {
  std::vector<TensorInfo> infos;
  for (const TensorData& tensor : tensors) infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  const SafetensorsHeader header = TRY(lay_out_file(std::move(infos), std::move(metadata)), "header");
  const Ordered ordered = TRY(in_order(header, tensors), "header");
  const auto from_memory = [&](const SafetensorsHeader& placed, std::uint64_t begin, std::span<std::byte> out) {
    gather(placed, ordered, begin, out);
    return Status(Ok{});
  };
  return write_file(files, path, header, from_memory, kMemoryStepBytes, as_in_file(header, ordered), threads, aside,
                    written);
}

}  // namespace

Result<SavedTensorFile> save_tensor_file(world::FileTarget& files, const std::string& path,
                                         std::span<const TensorData> tensors,
                                         std::map<std::string, std::string> metadata, unsigned threads,
                                         const std::string& aside, std::atomic<std::uint64_t>* written) {
  return TRY(save(files, path, tensors, std::move(metadata), threads, aside, written), "save " + path);
}

Status write_tensor_file(world::FileTarget& files, const std::string& path, std::vector<TensorInfo> tensors,
                         std::map<std::string, std::string> metadata, const DataBytes& data, unsigned threads,
                         const std::string& aside) {
  const std::string doing = "save " + path;
  SafetensorsHeader header = TRY(lay_out_file(std::move(tensors), std::move(metadata)), doing);
  TRY(write_file(files, path, std::move(header), data, kDataStepBytesMax, {}, threads, aside, nullptr), doing);
  return Ok{};
}

}  // namespace holdfast::store
