#include "store/aligned_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast::store {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
constexpr std::size_t kMappedFrom = 4 * kHugePage;

std::size_t whole_pages(std::size_t size) { return (size + kHugePage - 1) / kHugePage * kHugePage; }

// Huge pages need an address that is a multiple of their size: maps more, and gives back what is left and right of it.
std::byte* map(std::size_t size) {
  const std::size_t length = whole_pages(size);
  void* all = ::mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(all);
  const std::size_t lead = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (lead > 0) ::munmap(begin, lead);
  if (lead < kHugePage) ::munmap(begin + lead + length, kHugePage - lead);
  ::madvise(begin + lead, length, MADV_HUGEPAGE);
  return begin + lead;
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size)
    : data_(size >= kMappedFrom ? map(size)
                                : static_cast<std::byte*>(
                                      ::operator new(std::max<std::size_t>(size, 1), std::align_val_t{kAlignment}))),
      size_(size) {}

AlignedBytes::~AlignedBytes() {
  if (data_ == nullptr) return;
  if (size_ >= kMappedFrom) {
    ::munmap(data_, whole_pages(size_));
  } else {
    ::operator delete(data_, std::align_val_t{kAlignment});
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
