// Disks that turn the checkpoint protocol into one with a well-known bug, for tests of the tests. They wrap any disk
// and exist in test binaries alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "world/disk.h"

namespace holdfast::store {

/// Passes everything on.
class WrappedDisk : public world::Disk {
 public:
  explicit WrappedDisk(world::Disk& inner) : inner_(inner) {}
  Result<std::unique_ptr<world::WritableFile>> create(const std::string& path) override { return inner_.create(path); }
  Result<std::unique_ptr<world::WritableFile>> change(const std::string& path) override { return inner_.change(path); }
  Result<std::unique_ptr<world::ReadableFile>> open(const std::string& path) override { return inner_.open(path); }
  Status rename(const std::string& from, const std::string& to) override { return inner_.rename(from, to); }
  Status rename_new(const std::string& from, const std::string& to) override { return inner_.rename_new(from, to); }
  Status remove(const std::string& path) override { return inner_.remove(path); }
  Status make_dirs(const std::string& path) override { return inner_.make_dirs(path); }
  Status sync_dir(const std::string& path) override { return inner_.sync_dir(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return inner_.list(path); }
  bool exists(const std::string& path) override { return inner_.exists(path); }

 protected:
  world::Disk& inner_;
};

/// Missing sync: the bytes of files are never synced.
class UnsyncedFilesDisk : public WrappedDisk {
 public:
  using WrappedDisk::WrappedDisk;
  Result<std::unique_ptr<world::WritableFile>> create(const std::string& path) override {
    auto file = inner_.create(path);
    if (!file) return std::move(file).error();
    return std::unique_ptr<world::WritableFile>(std::make_unique<Unsynced>(*std::move(file)));
  }

 private:
  class Unsynced : public world::WritableFile {
   public:
    explicit Unsynced(std::unique_ptr<world::WritableFile> inner) : inner_(std::move(inner)) {}
    Status append(BytesView bytes) override { return inner_->append(bytes); }
    Status write_at(std::uint64_t offset, BytesView bytes) override { return inner_->write_at(offset, bytes); }
    Status sync() override { return Ok{}; }

   private:
    std::unique_ptr<world::WritableFile> inner_;
  };
};

/// Missing sync: names are never synced.
class UnsyncedNamesDisk : public WrappedDisk {
 public:
  using WrappedDisk::WrappedDisk;
  Status sync_dir(const std::string&) override { return Ok{}; }
};

/// Late shards, or early manifest: the shards' bytes are synced only once the manifest is in place and durable.
class EarlyManifestDisk : public WrappedDisk {
 public:
  using WrappedDisk::WrappedDisk;
  Result<std::unique_ptr<world::WritableFile>> create(const std::string& path) override {
    auto file = inner_.create(path);
    if (!file || path.find("/shard-") == std::string::npos) return file;
    return std::unique_ptr<world::WritableFile>(std::make_unique<Postponed>(*this, *std::move(file)));
  }
  Status rename_new(const std::string& from, const std::string& to) override {
    manifest_placed_ = manifest_placed_ || to.ends_with("/manifest.json");
    return inner_.rename_new(from, to);
  }
  Status sync_dir(const std::string& path) override {
    Status synced = inner_.sync_dir(path);
    if (!synced || !manifest_placed_) return synced;
    for (const auto& file : owed_) {
      if (Status paid = file->sync(); !paid) return paid;
    }
    owed_.clear();
    manifest_placed_ = false;
    return synced;
  }

 private:
  class Postponed : public world::WritableFile {
   public:
    Postponed(EarlyManifestDisk& disk, std::unique_ptr<world::WritableFile> inner)
        : disk_(disk), inner_(std::move(inner)) {}
    Status append(BytesView bytes) override { return inner_->append(bytes); }
    Status write_at(std::uint64_t offset, BytesView bytes) override { return inner_->write_at(offset, bytes); }
    Status sync() override {
      disk_.owed_.push_back(inner_);
      return Ok{};
    }

   private:
    EarlyManifestDisk& disk_;
    std::shared_ptr<world::WritableFile> inner_;  ///< shared: the debt outlives the file's being open
  };

  std::vector<std::shared_ptr<world::WritableFile>> owed_;
  bool manifest_placed_ = false;
};

/// Stale epoch accepted: nobody ever sees a fence.
class FencelessDisk : public WrappedDisk {
 public:
  using WrappedDisk::WrappedDisk;
  Result<std::vector<std::string>> list(const std::string& path) override {
    auto names = inner_.list(path);
    if (names) std::erase_if(*names, [](const std::string& name) { return name.starts_with("fence-"); });
    return names;
  }
};

}  // namespace holdfast::store
