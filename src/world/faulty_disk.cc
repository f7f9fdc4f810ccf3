#include "world/faulty_disk.h"

#include <cerrno>
#include <csignal>

#include "world/os_error.h"

namespace holdfast::world {
namespace {

/// Whatever handles it: a crash that a handler could turn into an exit would not be one.
void die_of_segv() {
  std::signal(SIGSEGV, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(SIGSEGV);
}

}  // namespace

class FaultyDisk::File final : public WritableFile {
 public:
  File(FaultyDisk& disk, std::unique_ptr<WritableFile> file, std::string path, bool full)
      : disk_(disk), file_(std::move(file)), path_(std::move(path)), full_(full) {}

  Status append(BytesView bytes) override {
    return pass_on(bytes, [&](BytesView part) { return file_->append(part); });
  }
  Status write_at(std::uint64_t offset, BytesView bytes) override {
    return pass_on(bytes, [&](BytesView part) { return file_->write_at(offset, part); });
  }
  Status sync() override { return file_->sync(); }

 private:
  template <typename Write>
  Status pass_on(BytesView bytes, Write write) {
    if (full_) return os_error(ENOSPC, path_);
    if (disk_.crash_.exchange(false)) {
      (void)write(bytes.first(bytes.size() / 2));
      die_of_segv();
    }
    return write(bytes);
  }

  FaultyDisk& disk_;
  std::unique_ptr<WritableFile> file_;
  std::string path_;
  bool full_;
};

void FaultyDisk::arm_full(int times) { full_ = times; }

void FaultyDisk::arm_crash() { crash_ = true; }

Result<std::unique_ptr<WritableFile>> FaultyDisk::create(const std::string& path) {
  auto file = disk_.create(path);
  if (!file) return file;
  int left = full_.load();
  while (left > 0 && !full_.compare_exchange_weak(left, left - 1)) continue;
  return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, *std::move(file), path, left > 0));
}

Result<std::unique_ptr<NewFile>> FaultyDisk::begin(const std::string& path, const std::string& aside,
                                                   const Pieces& pieces) {
  const bool armed = full_ > 0 || crash_;
  return armed ? Disk::begin(path, aside, pieces) : disk_.begin(path, aside, pieces);
}

}  // namespace holdfast::world
