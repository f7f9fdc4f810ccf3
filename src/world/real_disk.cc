#include "world/real_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "world/fd.h"
#include "world/os_error.h"
#include "world/parallel.h"

namespace holdfast::world {
namespace {

constexpr std::size_t kBytesPerCallMax = std::size_t{1} << 30;  // the kernel takes at most 2 GiB a call

class PosixWritable final : public WritableFile {
 public:
  PosixWritable(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Status append(BytesView bytes) override {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd_.get(), bytes.data(), std::min(bytes.size(), kBytesPerCallMax));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return os_error(errno, path_);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return Ok{};
  }

  Status write_at(std::uint64_t offset, BytesView bytes) override {
    if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) - bytes.size()) {
      return os_error(EFBIG, path_);
    }
    while (!bytes.empty()) {
      const ssize_t wrote =
          ::pwrite(fd_.get(), bytes.data(), std::min(bytes.size(), kBytesPerCallMax), static_cast<off_t>(offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return os_error(errno, path_);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
      offset += static_cast<std::uint64_t>(wrote);
    }
    return Ok{};
  }

  Status sync() override {
    if (::fdatasync(fd_.get()) != 0) return os_error(errno, path_);
    return Ok{};
  }

 private:
  Fd fd_;
  std::string path_;
};

class PosixReadable final : public ReadableFile {
 public:
  PosixReadable(Fd fd, std::string path, std::uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

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

 private:
  Error too_short(std::uint64_t offset) const {
    return {Code::Corrupt, path_ + ": ends before byte " + std::to_string(offset)};
  }

  Fd fd_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace

Result<std::unique_ptr<WritableFile>> RealDisk::create(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return os_error(errno, path);
  return std::unique_ptr<WritableFile>(std::make_unique<PosixWritable>(std::move(fd), path));
}

Result<std::unique_ptr<WritableFile>> RealDisk::change(const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  // Not O_APPEND: with it the kernel appends what is to be written elsewhere, too.
  if (!fd || ::lseek(fd.get(), 0, SEEK_END) < 0) return os_error(errno, path);
  return std::unique_ptr<WritableFile>(std::make_unique<PosixWritable>(std::move(fd), path));
}

Result<std::unique_ptr<ReadableFile>> RealDisk::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // non-blocking: a FIFO must not hold us up
  if (!fd) return os_error(errno, path);
  struct stat about{};
  if (::fstat(fd.get(), &about) != 0) return os_error(errno, path);
  if (!S_ISREG(about.st_mode)) return Error(Code::Internal, path + ": not a regular file");
  return std::unique_ptr<ReadableFile>(
      std::make_unique<PosixReadable>(std::move(fd), path, static_cast<std::uint64_t>(about.st_size)));
}

Status RealDisk::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return os_error(errno, from + " -> " + to);
  return Ok{};
}

Status RealDisk::remove(const std::string& path) {
  if (std::remove(path.c_str()) != 0) return os_error(errno, path);
  return Ok{};
}

Status RealDisk::make_dirs(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) return os_error(failure.value(), path);
  return Ok{};
}

Status RealDisk::sync_dir(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return os_error(errno, path);
  return Ok{};
}

Result<std::vector<std::string>> RealDisk::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), &::closedir);
  if (dir == nullptr) return os_error(errno, path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr && errno != 0) return os_error(errno, path);
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

unsigned RealDisk::threads() const { return usable_cpus(); }

bool RealDisk::exists(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0;
}

}  // namespace holdfast::world
