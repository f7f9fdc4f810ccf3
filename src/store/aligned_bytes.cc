#include "store/aligned_bytes.h"

#include <algorithm>
#include <new>
#include <utility>

#include "world/memory_pool.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kOnPageFrom = std::size_t{256} << 10U;
constexpr std::size_t kPooledFrom = world::MemoryPool::kHugePage;

std::align_val_t alignment(std::size_t size) { return std::align_val_t{size >= kOnPageFrom ? kPage : kAlignment}; }

std::byte* allocate(std::size_t size) {
  if (size < kPooledFrom) {
    return static_cast<std::byte*>(::operator new(std::max<std::size_t>(size, 1), alignment(size)));
  }
  std::byte* memory = world::memory_pool().take(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size) : data_(allocate(size)), size_(size) {}

AlignedBytes::~AlignedBytes() {
  if (data_ == nullptr) return;
  if (size_ >= kPooledFrom) {
    world::memory_pool().give(data_, size_);
  } else {
    ::operator delete(data_, alignment(size_));
  }
}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace holdfast::store
