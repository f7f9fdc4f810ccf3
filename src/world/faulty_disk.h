// A disk that fails when told to: how scheduled faults are acted out in a real run.
#pragma once

#include <atomic>
#include <memory>

#include "world/disk.h"

namespace holdfast::world {

/// Passes everything on to `disk`, which outlives this object and its files. May be armed from any thread.
class FaultyDisk final : public Disk {
 public:
  explicit FaultyDisk(Disk& disk) : disk_(disk) {}
  /// The next `times` files that are created refuse every write: Unavailable, "No space left on device".
  void arm_full(int times);
  /// The next write writes half of its bytes; then this process dies of SIGSEGV.
  void arm_crash();

  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> change(const std::string& path) override { return disk_.change(path); }
  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override { return disk_.open(path); }
  Status rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Status rename_new(const std::string& from, const std::string& to) override { return disk_.rename_new(from, to); }
  Status remove(const std::string& path) override { return disk_.remove(path); }
  Status make_dirs(const std::string& path) override { return disk_.make_dirs(path); }
  Status sync_dir(const std::string& path) override { return disk_.sync_dir(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return disk_.list(path); }
  bool exists(const std::string& path) override { return disk_.exists(path); }
  unsigned threads() const override { return disk_.threads(); }
  std::uint64_t piece_bytes(const std::string& path, std::uint64_t total) const override {
    return disk_.piece_bytes(path, total);
  }
  unsigned writes_at_a_time(const std::string& path, unsigned threads) const override {
    return disk_.writes_at_a_time(path, threads);
  }
  /// What is armed by then strikes the file; what is armed later the next one.
  Result<std::unique_ptr<NewFile>> begin(const std::string& path, const std::string& aside,
                                         const Pieces& pieces) override;

 private:
  class File;

  Disk& disk_;
  std::atomic<int> full_{0};  // files still to be refused
  std::atomic<bool> crash_{false};
};

}  // namespace holdfast::world
