#include "world/disk.h"

namespace holdfast::world {
namespace {

Status write_and_sync(Disk& disk, const std::string& path, BytesView bytes) {
  auto file = disk.create(path);
  if (!file) return std::move(file).error();
  if (auto written = (*file)->append(bytes); !written) return written;
  return (*file)->sync();
}

}  // namespace

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
