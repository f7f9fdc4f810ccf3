// Writing a new file from front to back, though its place takes it in pieces.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "store/aligned_bytes.h"
#include "world/files.h"

namespace holdfast::store {

/// Holds one piece in memory.
class PieceStream {
 public:
  /// `file` outlives this.
  PieceStream(world::NewFile& file, const world::Pieces& pieces);

  /// Errors: those of NewFile::write.
  Status append(BytesView bytes);
  /// After every byte was appended. The file is not committed.
  Status finish();

 private:
  world::NewFile& file_;
  world::Pieces pieces_;
  AlignedBytes piece_;
  std::uint64_t at_ = 0;
  std::uint64_t index_ = 0;
};

}  // namespace holdfast::store
