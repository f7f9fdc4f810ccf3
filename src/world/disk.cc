#include "world/disk.h"

namespace holdfast::world {
namespace {

Status write_and_sync(Disk& disk, const std::string& path, BytesView bytes) {
  auto file = disk.create(path);
  if (!file) return std::move(file).error();
  if (auto written = (*file)->append(bytes); !written) return written;
  return (*file)->sync();
}

/// Written and synced aside, then `put_in_place`.
template <typename PutInPlace>
Status write_aside(Disk& disk, const std::string& path, BytesView bytes, const PutInPlace& put_in_place) {
  const std::string aside = path + ".new";
  Status done = write_and_sync(disk, aside, bytes);
  if (done) done = put_in_place(aside);
  if (!done) {
    (void)disk.remove(aside);  // best effort: the error that counts is the first one
    return done;
  }
  return disk.sync_dir(parent_of(path));
}

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20U;

/// Written aside, and renamed into place.
class RenamedFile final : public NewFile {
 public:
  RenamedFile(Disk& disk, std::unique_ptr<WritableFile> file, std::string aside, std::string path, const Pieces& pieces)
      : disk_(disk), file_(std::move(file)), aside_(std::move(aside)), path_(std::move(path)), pieces_(pieces) {}
  ~RenamedFile() override {
    if (!renamed_) (void)disk_.remove(aside_);  // on a full disk it would take the room that the next try needs
  }
  RenamedFile(const RenamedFile&) = delete;
  RenamedFile& operator=(const RenamedFile&) = delete;

  Status write(std::uint64_t index, BytesView bytes) override { return file_->write_at(pieces_.begin(index), bytes); }

  Status commit() override {
    if (Status synced = file_->sync(); !synced) return synced;
    if (Status named = disk_.rename(aside_, path_); !named) return named;
    renamed_ = true;
    return disk_.sync_dir(parent_of(path_));
  }

 private:
  Disk& disk_;
  std::unique_ptr<WritableFile> file_;
  std::string aside_, path_;
  Pieces pieces_;
  bool renamed_ = false;
};

}  // namespace

Result<std::unique_ptr<WritableFile>> Disk::change(const std::string& path) {
  return Error(Code::Internal, path + ": can't be changed in place here");
}

Status Disk::write_new(const std::string& path, BytesView bytes) {
  return write_aside(*this, path, bytes, [&](const std::string& aside) { return rename_new(aside, path); });
}

Status Disk::sync_path(const std::string& path) {
  for (std::string above = path; above != "/";) {
    above = parent_of(above);
    Status synced = sync_dir(above);
    // Denied: we may not open it, so we made no entry in it. Internal: a file system (of a container, say) that knows
    // no sync of directories; it lies above ours, and refusing to run would help nobody.
    if (synced || synced.error().code() == Code::Denied || synced.error().code() == Code::Internal) continue;
    return std::move(synced).error().in("sync " + above);
  }
  return Ok{};
}

std::uint64_t Disk::piece_bytes(const std::string& /*path*/, std::uint64_t /*total*/) const { return kPieceBytes; }

Result<std::unique_ptr<NewFile>> Disk::begin(const std::string& path, const std::string& aside, const Pieces& pieces) {
  auto file = create(path + aside);
  if (!file) return std::move(file).error();
  return renamed_at_commit(*std::move(file), path, aside, pieces);
}

std::unique_ptr<NewFile> Disk::renamed_at_commit(std::unique_ptr<WritableFile> file, const std::string& path,
                                                 const std::string& aside, const Pieces& pieces) {
  return std::make_unique<RenamedFile>(*this, std::move(file), path + aside, path, pieces);
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

Status write_file_atomically(Disk& disk, const std::string& path, BytesView bytes) {
  return write_aside(disk, path, bytes, [&](const std::string& aside) { return disk.rename(aside, path); });
}

}  // namespace holdfast::world
