// Memory that tensors are loaded into.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"

namespace holdfast::store {

/// Bytes of a given size at an address that is a multiple of 64, left unset at first; large ones on huge pages, which
/// take a fraction of the time to be had.
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
