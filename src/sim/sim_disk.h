// A machine's disk as one process sees it: calls that count, cost time, fail by chance, and fail always once the
// process or its machine is gone.
#pragma once

#include "sim/process_table.h"
#include "world/disk.h"

namespace holdfast::sim {

class SimDisk final : public world::Disk {
 public:
  SimDisk(Cluster& cluster, ProcessRecord& process) : cluster_(cluster), process_(process) {}
  Result<std::unique_ptr<world::WritableFile>> create(const std::string& path) override;
  Result<std::unique_ptr<world::WritableFile>> change(const std::string& path) override;
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status rename_new(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_dirs(const std::string& path) override;
  Status sync_dir(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  bool exists(const std::string& path) override;

  // For the open files.
  DiskImage& image() { return process_.node->disk(); }
  Owner owner() const { return process_.owner; }
  /// One call. `error_chance` is the policy's for this kind of call, `size` what it moves, `took` what it takes.
  Status enter(const std::string& what, double error_chance, std::size_t size = 0, Nanos took = {});

 private:
  Cluster& cluster_;
  ProcessRecord& process_;
};

}  // namespace holdfast::sim
