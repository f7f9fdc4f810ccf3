// Reading bytes of a tensor file's data buffer to where they are wanted, checked on the way.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/aligned_bytes.h"
#include "store/read_policy.h"
#include "store/tensor_file.h"
#include "world/files.h"

namespace holdfast::store {

/// Bytes of the data buffer, from `begin` up to `end`, that belong at `out`.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::byte* out = nullptr;  ///< nowhere: to be checked only
};

class DataReader {
 public:
  /// `file`, `head` and what `policy` refers to outlive this object.
  DataReader(world::ReadableFile& file, const TensorFile& head, const ReadPolicy& policy)
      : file_(file), head_(head), policy_(policy), checked_(policy.checked && head.checksums && !file.checked()) {}

  /// Each chunk once, straight to where it belongs where all of it does; the rest through a bounded scratch memory.
  /// `spans` by place. The error is that of a piece in the file that has one.
  Status read(const std::vector<Span>& spans);

 private:
  /// A chunk of the data buffer, or where none is checked any bytes of it, and which of them are wanted where.
  struct Piece {
    std::uint64_t chunk = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<Span> parts;
    std::uint64_t size() const { return end - begin; }
  };
  struct Kept {
    std::uint64_t chunk = 0;
    Bytes bytes;
  };

  std::vector<Piece> cut(const std::vector<Span>& spans) const;
  Piece piece(std::uint64_t chunk, std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t chunk_end(std::uint64_t chunk) const;
  static bool direct(const Piece& piece);
  static void hand_out(const Piece& piece, BytesView bytes);
  bool hand_out_kept(const Piece& piece) const;
  Status read_pieces(std::span<const Piece> pieces, std::uint64_t scratch_bytes);
  Status arrived(const Piece& piece, BytesView bytes) const;
  Status check(const Piece& piece, BytesView bytes) const;
  std::string tensors_at(std::uint64_t begin, std::uint64_t end) const;

  world::ReadableFile& file_;
  const TensorFile& head_;
  ReadPolicy policy_;
  bool checked_;
  std::optional<Kept> kept_;  ///< the last chunk of which a part was read, checked: the next read may begin in it
};

}  // namespace holdfast::store
