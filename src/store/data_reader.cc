#include "store/data_reader.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kUncheckedBytes = std::uint64_t{4} << 20U;  // read at a time where no chunk is checked
constexpr std::uint64_t kScratchBytesMax = std::uint64_t{32} << 20U;

Error damaged(const std::string& what) { return {Code::Corrupt, what + "; restore the file from a copy"}; }

}  // namespace

Status DataReader::read(const std::vector<Span>& spans) {
  const std::vector<Piece> pieces = cut(spans);
  std::size_t begin = !pieces.empty() && hand_out_kept(pieces.front()) ? 1 : 0;
  while (begin < pieces.size()) {
    std::uint64_t scratch = 0;
    std::size_t end = begin;
    for (; end < pieces.size() && scratch <= kScratchBytesMax; ++end) {
      if (!direct(pieces[end])) scratch += pieces[end].size();
    }
    TRY(read_pieces(std::span(pieces).subspan(begin, end - begin), scratch), "read");
    begin = end;
  }
  return Ok{};
}

std::vector<DataReader::Piece> DataReader::cut(const std::vector<Span>& spans) const {
  const std::uint64_t chunk_bytes = checked_ ? kChecksumChunkBytes : kUncheckedBytes;
  std::vector<Piece> pieces;
  for (const Span& span : spans) {
    for (std::uint64_t begin = span.begin; begin < span.end;) {
      const std::uint64_t chunk = begin / chunk_bytes;
      const std::uint64_t end = std::min(span.end, (chunk + 1) * chunk_bytes);
      if (!checked_ || pieces.empty() || pieces.back().chunk != chunk) pieces.push_back(piece(chunk, begin, end));
      pieces.back().parts.push_back({begin, end, span.out == nullptr ? nullptr : span.out + (begin - span.begin)});
      begin = end;
    }
  }
  return pieces;
}

DataReader::Piece DataReader::piece(std::uint64_t chunk, std::uint64_t begin, std::uint64_t end) const {
  if (!checked_) return {chunk, begin, end, {}};
  return {chunk, chunk * kChecksumChunkBytes, chunk_end(chunk), {}};
}

std::uint64_t DataReader::chunk_end(std::uint64_t chunk) const {
  return std::min((chunk + 1) * kChecksumChunkBytes, head_.header.data_bytes());
}

bool DataReader::direct(const Piece& piece) {
  const Span& part = piece.parts.front();
  return part.out != nullptr && part.begin == piece.begin && part.end == piece.end;
}

void DataReader::hand_out(const Piece& piece, BytesView bytes) {
  for (const Span& part : piece.parts) {
    if (part.out != nullptr) std::memcpy(part.out, bytes.data() + (part.begin - piece.begin), part.end - part.begin);
  }
}

bool DataReader::hand_out_kept(const Piece& piece) const {
  if (!kept_ || kept_->chunk != piece.chunk || kept_->bytes.size() != piece.size()) return false;
  hand_out(piece, kept_->bytes);
  return true;
}

Status DataReader::read_pieces(std::span<const Piece> pieces, std::uint64_t scratch_bytes) {
  AlignedBytes scratch(scratch_bytes);
  std::vector<world::BlockRead> blocks;
  blocks.reserve(pieces.size());
  std::uint64_t used = 0;
  for (const Piece& each : pieces) {
    std::byte* into = each.parts.front().out;
    if (!direct(each)) {
      into = scratch.all().data() + used;
      used += each.size();
    }
    blocks.push_back({head_.header.data_begin + each.begin, {into, each.size()}});
  }
  Status done = file_.read_blocks(blocks, policy_.threads, [&](std::size_t i) {
    Status good = arrived(pieces[i], blocks[i].into);
    if (good && !direct(pieces[i])) hand_out(pieces[i], blocks[i].into);
    return good;
  });
  const Piece& last = pieces.back();
  if (done && checked_ && !direct(last)) {
    kept_ = Kept{last.chunk, Bytes(blocks.back().into.begin(), blocks.back().into.end())};
  }
  return done;
}

Status DataReader::arrived(const Piece& piece, BytesView bytes) const {
  if (policy_.stopped != nullptr && *policy_.stopped) return Error(Code::Unavailable, "stopped");
  if (Status good = checked_ ? check(piece, bytes) : Status(Ok{}); !good) return good;
  if (policy_.done != nullptr) *policy_.done += bytes.size();
  return Ok{};
}

Status DataReader::check(const Piece& piece, BytesView bytes) const {
  if (crc32c(bytes) == head_.checksums->chunks[piece.chunk]) return Ok{};
  const std::uint64_t at = head_.header.data_begin + piece.begin;
  return damaged(tensors_at(piece.begin, piece.end) + ": chunk " + std::to_string(piece.chunk) + " (bytes " +
                 std::to_string(at) + " to " + std::to_string(at + bytes.size()) + ") does not match its checksum");
}

/// "tensor a" or "tensors a to c".
std::string DataReader::tensors_at(std::uint64_t begin, std::uint64_t end) const {
  const TensorInfo* first = nullptr;
  const TensorInfo* last = nullptr;
  for (const TensorInfo& tensor : head_.header.tensors) {
    if (tensor.begin == tensor.end || tensor.end <= begin || tensor.begin >= end) continue;
    if (first == nullptr) first = &tensor;
    last = &tensor;
  }
  if (first == last) return first == nullptr ? "no tensor" : "tensor " + first->name;
  return "tensors " + first->name + " to " + last->name;
}

}  // namespace holdfast::store
