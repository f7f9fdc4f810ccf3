// Writing a new file from front to back, though its place takes it in pieces.
#pragma once

#include <functional>

#include "base/bytes.h"
#include "base/result.h"
#include "store/aligned_bytes.h"
#include "world/files.h"

namespace holdfast::store {

/// Holds one piece in memory, and with `first_last` the first one too, which is then written at the end.
class PieceStream {
 public:
  /// `file` outlives this.
  PieceStream(world::NewFile& file, const world::Pieces& pieces, bool first_last = false);

  /// Errors: those of NewFile::write.
  Status append(BytesView bytes);
  /// The first piece, which waits for `finish`; to be changed once it is passed.
  std::span<std::byte> first() { return first_.all(); }
  /// After every byte was appended. The file is not committed.
  Status finish();

 private:
  world::NewFile& file_;
  world::Pieces pieces_;
  bool first_last_;
  AlignedBytes first_;
  AlignedBytes piece_;
  std::uint64_t at_ = 0;
  std::uint64_t index_ = 0;
};

}  // namespace holdfast::store
