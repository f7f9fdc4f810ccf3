#include "world/files.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "world/parallel.h"

namespace holdfast::world {

Status ReadableFile::read_blocks(std::span<const BlockRead> blocks, unsigned threads,
                                 const std::function<Status(std::size_t)>& arrived) {
  std::mutex mutex;
  std::atomic<bool> failed = false;
  std::optional<std::pair<std::size_t, Error>> failure;
  parallel_for(threads, blocks.size(), [&](std::size_t i) {
    if (failed) return;
    Status done = read_at(blocks[i].offset, blocks[i].into);
    if (done) done = arrived(i);
    if (done) return;
    failed = true;
    const std::lock_guard lock(mutex);
    if (!failure || i < failure->first) failure.emplace(i, std::move(done).error());
  });
  if (failure) return std::move(failure->second);
  return Ok{};
}

std::uint64_t Pieces::count() const { return total <= head + piece ? 1 : (total - head + piece - 1) / piece; }

std::uint64_t Pieces::end(std::uint64_t index) const { return std::min(total, head + (index + 1) * piece); }

}  // namespace holdfast::world
