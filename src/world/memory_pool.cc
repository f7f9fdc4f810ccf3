#include "world/memory_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

namespace holdfast::world {
namespace {

constexpr std::uintptr_t kPage = 4096;

std::size_t whole_pages(std::size_t size) {
  return (size + MemoryPool::kHugePage - 1) / MemoryPool::kHugePage * MemoryPool::kHugePage;
}

// Huge pages need an address that is a multiple of their size: maps more, and gives back what is left and right of it.
std::byte* map(std::size_t length) {
  constexpr std::size_t kHugePage = MemoryPool::kHugePage;
  void* all = ::mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(all);
  const std::size_t lead = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (lead > 0) ::munmap(begin, lead);
  if (lead < kHugePage) ::munmap(begin + lead + length, kHugePage - lead);
  ::madvise(begin + lead, length, MADV_HUGEPAGE);
  return begin + lead;
}

}  // namespace

MemoryPool::~MemoryPool() { shrink_to(0); }

std::byte* MemoryPool::take(std::size_t size) {
  const std::size_t length = whole_pages(size);
  {
    const std::lock_guard lock(mutex_);
    if (std::byte* kept = take_kept(length)) return kept;
    shrink_to(kept_bytes_ > length ? kept_bytes_ - length : 0);
  }
  return map(length);
}

// The smallest that is large enough; what is over stays kept.
std::byte* MemoryPool::take_kept(std::size_t length) {
  auto best = kept_.end();
  for (auto each = kept_.begin(); each != kept_.end(); ++each) {
    if (each->second >= length && (best == kept_.end() || each->second < best->second)) best = each;
  }
  if (best == kept_.end()) return nullptr;
  const auto [begin, all] = *best;
  kept_.erase(best);
  if (all > length) kept_.emplace(begin + length, all - length);
  kept_bytes_ -= length;
  return begin;
}

void MemoryPool::give(std::byte* begin, std::size_t size) {
  std::size_t length = whole_pages(size);
  if (length >= policy_.reclaimable_from) ::madvise(begin, length, MADV_FREE);
  const std::lock_guard lock(mutex_);
  if (length > policy_.kept_bytes_max || kept_bytes_ > policy_.kept_bytes_max - length) {
    ::munmap(begin, length);
    return;
  }
  kept_bytes_ += length;
  auto after = kept_.lower_bound(begin);
  if (after != kept_.end() && begin + length == after->first) {
    length += after->second;
    after = kept_.erase(after);
  }
  if (after != kept_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second += length;
      return;
    }
  }
  kept_.emplace(begin, length);
}

void MemoryPool::shrink_to(std::uint64_t bytes) {
  while (kept_bytes_ > bytes) {
    const auto [begin, length] = *kept_.begin();
    ::munmap(begin, length);
    kept_bytes_ -= length;
    kept_.erase(kept_.begin());
  }
}

void MemoryPool::keep_at_most(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  policy_.kept_bytes_max = bytes;
  shrink_to(bytes);
}

std::uint64_t MemoryPool::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

MemoryPool& memory_pool() {
  static MemoryPool& pool =
      *new MemoryPool({.kept_bytes_max = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 4});
  return pool;
}

void fault_in(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / kPage * kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size() + kPage - 1) / kPage * kPage;
  // Of no use on an older kernel, which the read itself then makes up for.
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

}  // namespace holdfast::world
