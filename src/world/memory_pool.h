// Large memory that is kept when it is given back: memory fresh from the kernel takes 3 to 10 times as long to be
// filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace holdfast::world {

struct MemoryPoolPolicy {
  std::uint64_t kept_bytes_max = 0;
  std::uint64_t reclaimable_from = std::uint64_t{32} << 20U;  ///< kept ranges of this size the kernel may take back
};

/// Ranges of whole huge pages. Thread-safe. What is kept is marked so that the kernel takes it where memory gets short,
/// before it would swap or kill; so its content is lost.
class MemoryPool {
 public:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20U;

  explicit MemoryPool(MemoryPoolPolicy policy) : policy_(policy) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// At least `size` bytes of any content at a multiple of kHugePage; nullptr where there is no memory. Where nothing
  /// kept is large enough, as much of it goes back first, so that a pool never adds to the peak.
  std::byte* take(std::size_t size);
  /// What `take(size)` gave. Kept within the policy's bound, else the kernel's at once.
  void give(std::byte* begin, std::size_t size);

  void keep_at_most(std::uint64_t bytes);
  std::uint64_t kept_bytes() const;

 private:
  std::byte* take_kept(std::size_t length);
  void shrink_to(std::uint64_t bytes);

  mutable std::mutex mutex_;
  MemoryPoolPolicy policy_;
  std::map<std::byte*, std::size_t> kept_;  ///< begin -> length; no two adjoin
  std::uint64_t kept_bytes_ = 0;
};

/// The process's own, which keeps up to a quarter of the machine's memory. Never destroyed.
MemoryPool& memory_pool();

/// Has the pages of `memory` at hand, so that a read into it need not wait for the kernel to clear them one by one.
void fault_in(std::span<std::byte> memory);

}  // namespace holdfast::world
