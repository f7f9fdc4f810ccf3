#include "world/disk.h"

namespace holdfast::world {
namespace {

Status write_and_sync(Disk& disk, const std::string& path, BytesView bytes) {
  auto file = disk.create(path);
  if (!file) return std::move(file).error();
  if (auto written = (*file)->append(bytes); !written) return written;
  return (*file)->sync();
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

Result<Bytes> read_file(Disk& disk, const std::string& path, std::uint64_t bytes_max) {
  auto file = disk.open(path);
  if (!file) return std::move(file).error();
  const std::uint64_t size = (*file)->size();
  if (size > bytes_max) {
    return Error(Code::BadInput,
                 path + ": " + std::to_string(size) + " bytes, more than the limit of " + std::to_string(bytes_max));
  }
  Bytes bytes(size);
  if (auto read = (*file)->read_at(0, bytes); !read) return std::move(read).error();
  return bytes;
}

Status write_file_atomically(Disk& disk, const std::string& path, BytesView bytes) {
  const std::string aside = path + ".new";
  Status done = write_and_sync(disk, aside, bytes);
  if (done) done = disk.rename(aside, path);
  if (!done) {
    (void)disk.remove(aside);  // best effort: the error that counts is the first one
    return done;
  }
  return disk.sync_dir(parent_of(path));
}

}  // namespace holdfast::world
