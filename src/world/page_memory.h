// A little memory on pages, for reads and writes past the page cache that the caller's own memory does not suit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace holdfast::world {

class PageMemory {
 public:
  explicit PageMemory(std::size_t size)
      : data_(static_cast<std::byte*>(::operator new(size, std::align_val_t{4096}))), size_(size) {}

  std::span<std::byte> all() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{4096}); }
  };

  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

inline bool on_page(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 4096 == 0; }

}  // namespace holdfast::world
