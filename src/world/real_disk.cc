#include "world/real_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "world/direct_file.h"
#include "world/fd.h"
#include "world/os_error.h"
#include "world/parallel.h"
#include "world/real_file.h"

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

Result<std::unique_ptr<ReadableFile>> RealDisk::open(const std::string& path) { return open_real_file(path); }

Result<std::unique_ptr<NewFile>> RealDisk::begin(const std::string& path, const std::string& aside,
                                                 const Pieces& pieces) {
  if (!suits_direct_writes(pieces)) return Disk::begin(path, aside, pieces);
  auto file = create_direct_file(path + aside, pieces.total);
  if (!file) return std::move(file).error();
  if (*file == nullptr) return Disk::begin(path, aside, pieces);
  return renamed_at_commit(*std::move(file), path, aside, pieces);
}

unsigned RealDisk::writes_at_a_time(const std::string& /*path*/, unsigned threads) const {
  // Many at a time are quicker, but each has work done on the cores that others are to have.
  return threads == 1 || gives_way() ? 1 : std::max(threads, kDirectWritesAtATime);
}

Status RealDisk::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return os_error(errno, from + " -> " + to);
  return Ok{};
}

Status RealDisk::rename_new(const std::string& from, const std::string& to) {
  int failure = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  if (failure == EINVAL || failure == ENOSYS) {  // network file systems know no such rename, but links
    failure = ::link(from.c_str(), to.c_str()) == 0 ? 0 : errno;
    if (failure == 0 && ::unlink(from.c_str()) != 0) failure = errno;
  }
  if (failure == EEXIST) return Error(Code::Conflict, to + ": is there already");
  if (failure != 0) return os_error(failure, from + " -> " + to);
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
