// OpenTensorFile::read_exactly: what is wanted, and nothing around it.
#include <algorithm>

#include "store/tensor_file.h"

namespace holdfast::store {
namespace {

/// Cut at the edges of chunks; by place.
std::vector<DataRange> in_chunks(const std::vector<DataRange>& ranges) {
  std::vector<DataRange> pieces;
  for (DataRange range : ranges) {
    while (!range.out.empty()) {
      const std::uint64_t left = kChecksumChunkBytes - range.begin % kChecksumChunkBytes;
      const std::size_t size = std::min<std::uint64_t>(left, range.out.size());
      pieces.push_back({range.begin, range.out.first(size)});
      range = {range.begin + size, range.out.subspan(size)};
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const DataRange& a, const DataRange& b) { return a.begin < b.begin; });
  return pieces;
}

/// Whether the pieces, all of one chunk, are together all of it.
bool cover(std::span<const DataRange> pieces, std::uint64_t data_bytes) {
  const std::uint64_t begin = pieces.front().begin / kChecksumChunkBytes * kChecksumChunkBytes;
  std::uint64_t reached = begin;
  for (const DataRange& piece : pieces) {
    if (piece.begin > reached) return false;
    reached = std::max(reached, piece.begin + piece.out.size());
  }
  return reached == std::min(begin + kChecksumChunkBytes, data_bytes);
}

std::uint64_t total(const std::vector<DataRange>& ranges) {
  std::uint64_t bytes = 0;
  for (const DataRange& each : ranges) bytes += each.out.size();
  return bytes;
}

}  // namespace

Result<std::uint64_t> OpenTensorFile::read_exactly(const std::vector<DataRange>& ranges, unsigned threads) const {
  const std::vector<DataRange> pieces = in_chunks(ranges);
  std::vector<DataRange> whole;
  std::vector<world::BlockRead> rest;
  for (std::size_t begin = 0; begin < pieces.size();) {
    const std::uint64_t chunk = pieces[begin].begin / kChecksumChunkBytes;
    std::size_t end = begin;
    while (end < pieces.size() && pieces[end].begin / kChecksumChunkBytes == chunk) ++end;
    const std::span<const DataRange> of_chunk = std::span(pieces).subspan(begin, end - begin);
    if (about_.checksums && cover(of_chunk, about_.header.data_bytes())) {
      whole.insert(whole.end(), of_chunk.begin(), of_chunk.end());
    } else {
      for (const DataRange& each : of_chunk) rest.push_back({about_.header.data_begin + each.begin, each.out});
    }
    begin = end;
  }
  const std::uint64_t checked = total(whole);
  TRY(read(std::move(whole), threads), "read");
  TRY(file_->read_blocks(rest, threads, [](std::size_t) { return Status(Ok{}); }), path_ + ": data");
  return checked;
}

}  // namespace holdfast::store
