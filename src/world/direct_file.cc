#include "world/direct_file.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "world/fd.h"
#include "world/os_error.h"
#include "world/page_memory.h"

namespace holdfast::world {
namespace {

constexpr std::uint64_t kDirectFrom = std::uint64_t{4} << 20U;
constexpr std::uint64_t kBounceBytes = std::uint64_t{1} << 20U;

class DirectWritable final : public WritableFile {
 public:
  DirectWritable(Fd fd, std::string path, std::uint64_t total)
      : fd_(std::move(fd)), path_(std::move(path)), total_(total) {}

  Status append(BytesView bytes) override {
    Status done = write_at(appended_, bytes);
    appended_ += bytes.size();
    return done;
  }

  Status write_at(std::uint64_t offset, BytesView bytes) override {
    CHECK(offset % kDirectPage == 0 && offset + bytes.size() <= total_);
    for (std::uint64_t end = end_;
         end < offset + bytes.size() && !end_.compare_exchange_weak(end, offset + bytes.size());)
      continue;
    const std::uint64_t whole = on_page(bytes.data()) ? bytes.size() / kDirectPage * kDirectPage : 0;
    if (Status done = write_pages(offset, bytes.first(whole)); !done) return done;
    return write_copied(offset + whole, bytes.subspan(whole));
  }

  Status sync() override {
    // The last page was written whole, and room may have been taken for more than came.
    if (::ftruncate(fd_.get(), static_cast<off_t>(end_.load())) != 0) return os_error(errno, path_);
    if (::fdatasync(fd_.get()) != 0) return os_error(errno, path_);
    return Ok{};
  }

 private:
  /// Bytes that lie elsewhere than on a page, or are no whole number of pages, through memory that suits.
  Status write_copied(std::uint64_t offset, BytesView bytes) {
    if (bytes.empty()) return Ok{};
    const PageMemory copy(std::min<std::uint64_t>(pages(bytes.size()), kBounceBytes));
    while (!bytes.empty()) {
      const BytesView part = bytes.first(std::min<std::uint64_t>(bytes.size(), copy.all().size()));
      std::memcpy(copy.all().data(), part.data(), part.size());
      const std::uint64_t padded = pages(part.size());
      std::memset(copy.all().data() + part.size(), 0, padded - part.size());
      if (Status done = write_pages(offset, copy.all().first(padded)); !done) return done;
      offset += part.size();
      bytes = bytes.subspan(part.size());
    }
    return Ok{};
  }

  Status write_pages(std::uint64_t offset, BytesView bytes) {
    while (!bytes.empty()) {
      const ssize_t wrote = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return os_error(errno, path_);
      // A disk that fills up may take part of a page, from whose middle there is no going on.
      const std::uint64_t taken = static_cast<std::uint64_t>(wrote) / kDirectPage * kDirectPage;
      if (taken == 0) return os_error(ENOSPC, path_);
      bytes = bytes.subspan(taken);
      offset += taken;
    }
    return Ok{};
  }

  static std::uint64_t pages(std::uint64_t bytes) { return (bytes + kDirectPage - 1) / kDirectPage * kDirectPage; }

  Fd fd_;
  std::string path_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> end_ = 0;  // of what was written
  std::uint64_t appended_ = 0;
};

Status take_room(const Fd& fd, const std::string& path, std::uint64_t total) {
  if (total > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return os_error(EFBIG, path);
  // Writes that grow a file wait for one another, so it gets its size before.
  const auto size = static_cast<off_t>(total);
  if (::fallocate(fd.get(), 0, 0, size) == 0) return Ok{};
  if (errno == EOPNOTSUPP && ::ftruncate(fd.get(), size) == 0) return Ok{};
  return os_error(errno, path);
}

}  // namespace

bool suits_direct_writes(const Pieces& pieces) {
  return pieces.total >= kDirectFrom && pieces.head % kDirectPage == 0 && pieces.piece % kDirectPage == 0;
}

Result<std::unique_ptr<WritableFile>> create_direct_file(const std::string& path, std::uint64_t total) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_DIRECT, 0666));
  if (!fd && errno == EINVAL) return std::unique_ptr<WritableFile>();
  if (!fd) return os_error(errno, path);
  if (Status room = take_room(fd, path, total); !room) {
    fd.reset();
    ::unlink(path.c_str());
    return std::move(room).error();
  }
  return std::unique_ptr<WritableFile>(std::make_unique<DirectWritable>(std::move(fd), path, total));
}

}  // namespace holdfast::world
