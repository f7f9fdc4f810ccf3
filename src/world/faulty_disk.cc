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
    if (full_) return os_error(ENOSPC, path_);
    if (disk_.crash_.exchange(false)) {
      (void)file_->append(bytes.first(bytes.size() / 2));
      die_of_segv();
    }
    return file_->append(bytes);
  }
  Status sync() override { return file_->sync(); }

 private:
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

}  // namespace holdfast::world
