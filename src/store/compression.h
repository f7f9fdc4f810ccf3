// zstd on chunks of memory.
#pragma once

#include <memory>
#include <span>

#include "base/bytes.h"

struct ZSTD_CCtx_s;  // zstd's
struct ZSTD_DCtx_s;

namespace holdfast::store {

constexpr int kCompressionLevelMax = 19;

/// One thread at a time.
class Compressor {
 public:
  /// `level`: 1 (fast) to kCompressionLevelMax.
  explicit Compressor(int level);
  /// The bytes it took, or 0 where `out` is too small for it.
  std::size_t compress(BytesView bytes, std::span<std::byte> out);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  int level_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

/// One thread at a time.
class Decompressor {
 public:
  Decompressor();
  /// Fills all of `out`; false where `bytes` are no frame of exactly so many. Writes nothing outside `out`, and needs
  /// no memory besides, whatever the frame claims.
  bool decompress(BytesView bytes, std::span<std::byte> out);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace holdfast::store
