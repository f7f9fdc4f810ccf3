#include "store/compression.h"

#include <zstd.h>

#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace holdfast::store {
namespace {

/// The library also reads formats of its past and several frames in a row: more than anybody needs to look at.
bool one_frame(BytesView bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER && ZSTD_findFrameCompressedSize(bytes.data(), bytes.size()) == bytes.size();
}

}  // namespace

void Compressor::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

Compressor::Compressor(int level) : level_(level), context_(ZSTD_createCCtx()) {
  CHECK(context_ != nullptr && level >= 1 && level <= kCompressionLevelMax);
}

std::size_t Compressor::compress(BytesView bytes, std::span<std::byte> out) {
  const std::size_t size =
      ZSTD_compressCCtx(context_.get(), out.data(), out.size(), bytes.data(), bytes.size(), level_);
  return ZSTD_isError(size) != 0 ? 0 : size;
}

void Decompressor::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

Decompressor::Decompressor() : context_(ZSTD_createDCtx()) { CHECK(context_ != nullptr); }

bool Decompressor::decompress(BytesView bytes, std::span<std::byte> out) {
  if (!one_frame(bytes)) return false;
  const std::size_t size = ZSTD_decompressDCtx(context_.get(), out.data(), out.size(), bytes.data(), bytes.size());
  return ZSTD_isError(size) == 0 && size == out.size();
}

}  // namespace holdfast::store
