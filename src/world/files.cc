#include "world/files.h"

#include <algorithm>

#include "world/parallel.h"

namespace holdfast::world {

Status ReadableFile::read_blocks(std::span<const BlockRead> blocks, unsigned threads,
                                 const std::function<Status(std::size_t)>& arrived) {
  return parallel_try(threads, blocks.size(), [&](std::size_t i) {
    Status done = read_at(blocks[i].offset, blocks[i].into);
    return done ? arrived(i) : done;
  });
}

std::uint64_t Pieces::count() const { return total <= head + piece ? 1 : (total - head + piece - 1) / piece; }

std::uint64_t Pieces::end(std::uint64_t index) const { return std::min(total, head + (index + 1) * piece); }

}  // namespace holdfast::world
