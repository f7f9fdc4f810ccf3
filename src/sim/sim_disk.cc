#include "sim/sim_disk.h"

#include <algorithm>

#include "sim/cluster.h"

namespace holdfast::sim {

namespace {

Error gone(const std::string& what) { return {Code::Unavailable, what + ": the simulated machine or process is gone"}; }

class SimWritable final : public world::WritableFile {
 public:
  SimWritable(SimDisk& disk, InodePtr file, std::string path)
      : disk_(disk),
        owner_(disk.owner()),
        crashes_(disk.image().crashes()),
        file_(std::move(file)),
        path_(std::move(path)) {}
  ~SimWritable() override {
    if (crashes_ == disk_.image().crashes()) disk_.image().close(file_);
  }

  Status append(BytesView bytes) override { return write("append ", file_->bytes.size(), bytes); }
  Status write_at(std::uint64_t offset, BytesView bytes) override { return write("write ", offset, bytes); }

  Status sync() override {
    if (owner_ != disk_.owner()) return gone("sync " + path_);
    const DiskPolicy& policy = disk_.image().policy;
    Status entered = disk_.enter("sync " + path_, policy.sync_error, 0, policy.per_sync);
    if (!entered) {
      doom_bytes(*file_);
      return entered;
    }
    if (!policy.sync_ignored) sync_bytes(*file_);
    return Ok{};
  }

 private:
  Status write(const char* what, std::uint64_t offset, BytesView bytes) {
    if (owner_ != disk_.owner()) return gone(what + path_);
    if (Status entered = disk_.enter(what + path_, 0, bytes.size()); !entered) return entered;
    Status done = disk_.image().write(*file_, offset, bytes);
    if (!done) return std::move(done).error().in(path_);
    return done;
  }

  SimDisk& disk_;
  Owner owner_;
  std::uint64_t crashes_;
  InodePtr file_;
  std::string path_;
};

class SimReadable final : public world::ReadableFile {
 public:
  SimReadable(SimDisk& disk, InodePtr file, std::string path)
      : disk_(disk),
        owner_(disk.owner()),
        crashes_(disk.image().crashes()),
        file_(std::move(file)),
        path_(std::move(path)),
        size_(file_->bytes.size()) {}
  ~SimReadable() override {
    if (crashes_ == disk_.image().crashes()) disk_.image().close(file_);
  }

  std::uint64_t size() const override { return size_; }

  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (owner_ != disk_.owner()) return gone("read " + path_);
    if (Status entered = disk_.enter("read " + path_, disk_.image().policy.read_error, out.size()); !entered) {
      return entered;
    }
    const Bytes& bytes = file_->bytes;
    if (offset > bytes.size() || out.size() > bytes.size() - offset) {
      return Error(Code::Corrupt, path_ + ": ends before byte " + std::to_string(offset + out.size()));
    }
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return Ok{};
  }

 private:
  SimDisk& disk_;
  Owner owner_;
  std::uint64_t crashes_;
  InodePtr file_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace

Status SimDisk::enter(const std::string& what, double error_chance, std::size_t size, Nanos took) {
  if (!process_.alive || !process_.node->enter_disk_call() || !cluster_.processes().enter(process_)) return gone(what);
  const DiskPolicy& policy = image().policy;
  process_.io_cost +=
      policy.per_call + took + Nanos(static_cast<std::int64_t>(static_cast<double>(size) * 1e9 / policy.bytes_per_s));
  if (cluster_.traced()) cluster_.trace(&process_, what + (size != 0 ? ", " + std::to_string(size) + " bytes" : ""));
  if (image().draw_error(error_chance)) return Error(Code::Unavailable, what + ": Input/output error");
  return Ok{};
}

Result<std::unique_ptr<world::WritableFile>> SimDisk::create(const std::string& path) {
  if (Status entered = enter("create " + path, image().policy.name_error); !entered) return std::move(entered).error();
  auto file = image().create(path);
  if (!file) return std::move(file).error();
  return std::unique_ptr<world::WritableFile>(std::make_unique<SimWritable>(*this, *std::move(file), path));
}

Result<std::unique_ptr<world::WritableFile>> SimDisk::change(const std::string& path) {
  if (Status entered = enter("change " + path, image().policy.name_error); !entered) return std::move(entered).error();
  auto file = image().open(path);
  if (!file) return std::move(file).error();
  return std::unique_ptr<world::WritableFile>(std::make_unique<SimWritable>(*this, *std::move(file), path));
}

Result<std::unique_ptr<world::ReadableFile>> SimDisk::open(const std::string& path) {
  if (Status entered = enter("open " + path, image().policy.name_error); !entered) return std::move(entered).error();
  auto file = image().open(path);
  if (!file) return std::move(file).error();
  return std::unique_ptr<world::ReadableFile>(std::make_unique<SimReadable>(*this, *std::move(file), path));
}

Status SimDisk::rename(const std::string& from, const std::string& to) {
  if (Status entered = enter("rename " + from + " -> " + to, image().policy.name_error); !entered) return entered;
  return image().rename(from, to);
}

Status SimDisk::rename_new(const std::string& from, const std::string& to) {
  if (Status entered = enter("rename " + from + " -> " + to, image().policy.name_error); !entered) return entered;
  if (image().exists(to)) return Error(Code::Conflict, to + ": is there already");
  return image().rename(from, to);
}

Status SimDisk::remove(const std::string& path) {
  if (Status entered = enter("remove " + path, image().policy.name_error); !entered) return entered;
  return image().remove(path);
}

Status SimDisk::make_dirs(const std::string& path) {
  if (Status entered = enter("make " + path, image().policy.name_error); !entered) return entered;
  return image().make_dirs(path);
}

Status SimDisk::sync_dir(const std::string& path) {
  const DiskPolicy& policy = image().policy;
  if (Status entered = enter("sync " + path, policy.name_error, 0, policy.per_sync); !entered) return entered;
  return image().sync_dir(path);
}

Result<std::vector<std::string>> SimDisk::list(const std::string& path) {
  if (Status entered = enter("list " + path, image().policy.name_error); !entered) return std::move(entered).error();
  return image().list(path);
}

bool SimDisk::exists(const std::string& path) {
  return static_cast<bool>(enter("look for " + path, 0)) && image().exists(path);
}

}  // namespace holdfast::sim
