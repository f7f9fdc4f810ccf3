// Memory that tensors are loaded into.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"

namespace holdfast::store {

/// Bytes of a given size at an address that is a multiple of 64, left unset at first; from 256 KiB on of a page, so
/// that they can be read and written past the page cache. Large ones are on huge pages and from a pool
/// (world/memory_pool.h).
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size);
  ~AlignedBytes();
  AlignedBytes(AlignedBytes&& other) noexcept;
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  std::span<std::byte> all() { return {data_, size_}; }
  BytesView all() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace holdfast::store
