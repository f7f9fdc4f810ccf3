#include "store/piece_stream.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace holdfast::store {

PieceStream::PieceStream(world::NewFile& file, const world::Pieces& pieces)
    : file_(file), pieces_(pieces), piece_(std::min(pieces.head + pieces.piece, pieces.total)) {}

Status PieceStream::append(BytesView bytes) {
  while (!bytes.empty()) {
    CHECK(at_ < pieces_.total);
    const std::uint64_t begin = pieces_.begin(index_);
    const std::uint64_t end = pieces_.end(index_);
    const std::size_t taken = std::min<std::uint64_t>(bytes.size(), end - at_);
    const std::span<std::byte> piece = piece_.all().first(end - begin);
    std::memcpy(piece.data() + (at_ - begin), bytes.data(), taken);
    bytes = bytes.subspan(taken);
    at_ += taken;
    if (at_ < end) continue;
    if (Status written = file_.write(index_++, piece); !written) return written;
  }
  return Ok{};
}

Status PieceStream::finish() {
  CHECK(at_ == pieces_.total);
  return pieces_.total > 0 ? Status(Ok{}) : file_.write(0, {});  // an empty file is a piece too
}

}  // namespace holdfast::store
