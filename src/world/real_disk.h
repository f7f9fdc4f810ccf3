// Disk on POSIX files.
#pragma once

#include "world/disk.h"

namespace holdfast::world {

class RealDisk final : public Disk {
 public:
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> change(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status rename_new(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_dirs(const std::string& path) override;
  Status sync_dir(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  bool exists(const std::string& path) override;
  unsigned threads() const override;
  /// Large files of whole pages are written past the page cache, where the file system can.
  Result<std::unique_ptr<NewFile>> begin(const std::string& path, const std::string& aside,
                                         const Pieces& pieces) override;
  unsigned writes_at_a_time(const std::string& path, unsigned threads) const override;
};

}  // namespace holdfast::world
