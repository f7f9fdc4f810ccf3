#include "world/real_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "world/fd.h"
#include "world/memory_pool.h"
#include "world/os_error.h"
#include "world/page_memory.h"
#include "world/parallel.h"

namespace holdfast::world {
namespace {

constexpr std::size_t kBytesPerCallMax = std::size_t{1} << 30;  // the kernel takes at most 2 GiB a call
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kUnitBytes = std::uint64_t{4} << 20U;  // of one read past the page cache
constexpr unsigned kReadsAtATime = 12;  // the disk has enough to do even while some of them compute
constexpr std::uint64_t kDirectFrom = std::uint64_t{256} << 10U;  // smaller reads gain nothing
constexpr std::size_t kSamples = 16;
constexpr std::uint64_t kSampleBytes = std::uint64_t{256} << 10U;

// As in linux/mman.h of kernel 6.5, which knows the call first.
constexpr long kCachestatCall = 451;
struct CachestatRange {
  std::uint64_t offset, length;
};
struct Cachestat {
  std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

class RealFile final : public ReadableFile {
 public:
  RealFile(Fd fd, std::string path, std::uint64_t size) : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) - out.size()) return too_short(offset);
    while (!out.empty()) {
      const ssize_t got =
          ::pread(fd_.get(), out.data(), std::min(out.size(), kBytesPerCallMax), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return os_error(errno, path_);
      if (got == 0) return too_short(offset);
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return Ok{};
  }

  Status read_blocks(std::span<const BlockRead> blocks, unsigned threads,
                     const std::function<Status(std::size_t)>& arrived) override {
    if (threads > 1 && !cached(blocks)) {
      if (const int direct = direct_fd(); direct >= 0) return read_past_cache(direct, blocks, threads, arrived);
    }
    return parallel_try(threads, blocks.size(), [&](std::size_t i) { return read_block(blocks[i], i, arrived); });
  }

 private:
  /// Blocks that adjoin, in the file and in memory.
  struct Unit {
    std::size_t first = 0;
    std::size_t count = 0;
    BlockRead whole;
  };

  Status read_block(const BlockRead& block, std::size_t index, const std::function<Status(std::size_t)>& arrived) {
    fault_in(block.into);
    Status done = read_at(block.offset, block.into);
    return done ? arrived(index) : done;
  }

  static std::vector<Unit> units(std::span<const BlockRead> blocks) {
    std::vector<Unit> units;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const BlockRead& block = blocks[i];
      if (!units.empty()) {
        Unit& last = units.back();
        const std::uint64_t size = last.whole.into.size();
        if (size + block.into.size() <= kUnitBytes && last.whole.offset + size == block.offset &&
            last.whole.into.data() + size == block.into.data()) {
          last.whole.into = {last.whole.into.data(), size + block.into.size()};
          ++last.count;
          continue;
        }
      }
      units.push_back({i, 1, block});
    }
    return units;
  }

  Status read_past_cache(int direct, std::span<const BlockRead> blocks, unsigned threads,
                         const std::function<Status(std::size_t)>& arrived) {
    const std::vector<Unit> all = units(blocks);
    return parallel_try(std::max(threads, kReadsAtATime), all.size(), [&](std::size_t u) {
      const Unit& unit = all[u];
      const std::uint64_t size = unit.whole.into.size();
      fault_in(unit.whole.into);
      const bool plain = size < kDirectFrom || in_cache(unit.whole.offset, size).value_or(false);
      Status done = plain ? read_at(unit.whole.offset, unit.whole.into) : read_direct(direct, unit.whole);
      for (std::size_t i = unit.first; done && i < unit.first + unit.count; ++i) done = arrived(i);
      return done;
    });
  }

  /// The pages that lie alike in the file and in memory straight to their place, the rest through a page that does.
  Status read_direct(int direct, const BlockRead& block) {
    std::uint64_t offset = block.offset;
    std::span<std::byte> out = block.into;
    if (reinterpret_cast<std::uintptr_t>(out.data()) % kPage != offset % kPage) return read_copied(direct, offset, out);
    const std::uint64_t lead = std::min<std::uint64_t>((kPage - offset % kPage) % kPage, out.size());
    if (Status done = read_copied(direct, offset, out.first(lead)); !done) return done;
    offset += lead;
    out = out.subspan(lead);
    const std::uint64_t whole = out.size() / kPage * kPage;
    if (Status done = read_pages(direct, offset, out.first(whole), whole); !done) return done;
    return read_copied(direct, offset + whole, out.subspan(whole));
  }

  Status read_copied(int direct, std::uint64_t offset, std::span<std::byte> out) {
    if (out.empty()) return Ok{};
    const std::uint64_t begin = offset / kPage * kPage;
    const std::uint64_t end = (offset + out.size() + kPage - 1) / kPage * kPage;
    const PageMemory pages(end - begin);
    const std::uint64_t needed = offset + out.size() - begin;  // the file may end before the page does
    if (Status done = read_pages(direct, begin, pages.all(), needed); !done) return done;
    std::memcpy(out.data(), pages.all().data() + (offset - begin), out.size());
    return Ok{};
  }

  /// Fills `out`, or at least its first `needed` bytes where the file ends there.
  Status read_pages(int direct, std::uint64_t offset, std::span<std::byte> out, std::uint64_t needed) {
    for (std::uint64_t filled = 0; filled < needed;) {
      const ssize_t got =
          ::pread(direct, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      // The file system takes no such reads after all, or not from such a place.
      if (got < 0 && errno == EINVAL) return read_at(offset + filled, out.subspan(filled, needed - filled));
      if (got < 0) return os_error(errno, path_);
      if (got == 0) return too_short(offset + filled);
      filled += static_cast<std::uint64_t>(got);
    }
    return Ok{};
  }

  /// Whether the page cache holds all of a few samples.
  bool cached(std::span<const BlockRead> blocks) {
    std::uint64_t bytes = 0;
    for (const BlockRead& block : blocks) bytes += block.into.size();
    if (bytes < kDirectFrom) return true;
    const std::size_t samples = std::min(blocks.size(), kSamples);
    for (std::size_t i = 0; i < samples; ++i) {
      const BlockRead& block = blocks[i * (blocks.size() - 1) / std::max<std::size_t>(samples - 1, 1)];
      const std::uint64_t size = std::min<std::uint64_t>(block.into.size(), kSampleBytes);
      if (!in_cache(block.offset, size).value_or(at_hand(block.offset))) return false;
    }
    return true;
  }

  /// None where the kernel does not say.
  std::optional<bool> in_cache(std::uint64_t offset, std::uint64_t size) const {
    const std::uint64_t end = std::min(offset + size, size_);
    if (size == 0 || end <= offset) return true;
    const CachestatRange range{offset, end - offset};
    Cachestat found{};
    if (::syscall(kCachestatCall, fd_.get(), &range, &found, 0) != 0) return std::nullopt;
    return found.cached >= (end - 1) / kPage - offset / kPage + 1;
  }

  /// Whether a byte can be read without waiting. Where it can't, the kernel may begin to fetch it.
  bool at_hand(std::uint64_t offset) const {
    std::byte byte{};
    iovec into{&byte, 1};
    return ::preadv2(fd_.get(), &into, 1, static_cast<off_t>(offset), RWF_NOWAIT) >= 0 || errno == EOPNOTSUPP;
  }

  /// The same file opened to be read past the page cache; -1 where that can't be.
  int direct_fd() {
    const std::lock_guard lock(direct_mutex_);
    if (!direct_tried_) {
      direct_tried_ = true;
      // Not by its path, where meanwhile another file may be.
      direct_.reset(::open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
    }
    return direct_.get();
  }

  Error too_short(std::uint64_t offset) const {
    return {Code::Corrupt, path_ + ": ends before byte " + std::to_string(offset)};
  }

  Fd fd_;
  std::string path_;
  std::uint64_t size_;
  std::mutex direct_mutex_;
  bool direct_tried_ = false;
  Fd direct_;
};

}  // namespace

Result<std::unique_ptr<ReadableFile>> open_real_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // non-blocking: a FIFO must not hold us up
  if (!fd) return os_error(errno, path);
  struct stat about{};
  if (::fstat(fd.get(), &about) != 0) return os_error(errno, path);
  if (!S_ISREG(about.st_mode)) return Error(Code::Internal, path + ": not a regular file");
  return std::unique_ptr<ReadableFile>(
      std::make_unique<RealFile>(std::move(fd), path, static_cast<std::uint64_t>(about.st_size)));
}

}  // namespace holdfast::world
