#include "store/piece_stream.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace holdfast::store {

PieceStream::PieceStream(world::NewFile& file, const world::Pieces& pieces, bool first_last)
    : file_(file),
      pieces_(pieces),
      first_last_(first_last),
      first_(pieces.end(0)),
      piece_(pieces.count() > 1 ? pieces.piece : 0) {}

Status PieceStream::append(BytesView bytes) {
  while (!bytes.empty()) {
    CHECK(at_ < pieces_.total);
    const std::uint64_t begin = pieces_.begin(index_);
    const std::uint64_t end = pieces_.end(index_);
    const std::size_t taken = std::min<std::uint64_t>(bytes.size(), end - at_);
    const std::span<std::byte> piece = (index_ == 0 ? first_ : piece_).all().first(end - begin);
    std::memcpy(piece.data() + (at_ - begin), bytes.data(), taken);
    bytes = bytes.subspan(taken);
    at_ += taken;
    if (at_ < end) continue;
    if (index_ > 0 || !first_last_) {
      if (Status written = file_.write(index_, piece); !written) return written;
    }
    ++index_;
  }
  return Ok{};
}

Status PieceStream::finish() {
  CHECK(at_ == pieces_.total);
  if (!first_last_ && pieces_.total > 0) return Ok{};
  return file_.write(0, first_.all());
}

}  // namespace holdfast::store
