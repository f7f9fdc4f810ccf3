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

Result<Bytes> read_file(FileSource& files, const std::string& name, std::uint64_t bytes_max) {
  auto file = files.open(name);
  if (!file) return std::move(file).error();
  const std::uint64_t size = (*file)->size();
  if (size > bytes_max) {
    return Error(Code::BadInput,
                 name + ": " + std::to_string(size) + " bytes, more than the limit of " + std::to_string(bytes_max));
  }
  Bytes bytes(size);
  if (auto read = (*file)->read_at(0, bytes); !read) return std::move(read).error();
  return bytes;
}

}  // namespace holdfast::world
