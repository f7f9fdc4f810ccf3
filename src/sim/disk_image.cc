// Names: every change is applied at once to what programs see, and waits in `pending_` for the sync of its directory.
#include "sim/disk_image.h"

#include <algorithm>

#include "base/check.h"

namespace holdfast::sim {

namespace {

std::vector<std::string> split(const std::string& path) {
  CHECK(!path.empty() && path[0] == '/');
  std::vector<std::string> parts;
  std::size_t at = 1;
  while (at < path.size()) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at && path.compare(at, slash - at, ".") != 0) parts.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return parts;
}

Error not_found(const std::string& path) { return {Code::NotFound, path + ": No such file or directory"}; }
Error not_a_directory(const std::string& path) { return {Code::NotFound, path + ": Not a directory"}; }

InodePtr make_inode(bool directory) {
  auto inode = std::make_shared<Inode>();
  inode->directory = directory;
  return inode;
}

bool holds(const Inode& dir, const Inode* wanted) {
  if (&dir == wanted) return true;
  return std::any_of(dir.names.begin(), dir.names.end(),
                     [wanted](const auto& entry) { return entry.second->directory && holds(*entry.second, wanted); });
}

}  // namespace

DiskImage::DiskImage(const SimRandom& random) : random_(random), root_(make_inode(true)) {}

InodePtr DiskImage::find(const std::string& path) const {
  InodePtr at = root_;
  for (const std::string& part : split(path)) {
    if (!at->directory) return nullptr;
    const auto entry = at->names.find(part);
    if (entry == at->names.end()) return nullptr;
    at = entry->second;
  }
  return at;
}

Result<std::pair<InodePtr, std::string>> DiskImage::parent(const std::string& path) const {
  std::vector<std::string> parts = split(path);
  if (parts.empty()) return Error(Code::Internal, path + ": Is the root directory");
  std::string above = "/";
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) above += parts[i] + "/";
  InodePtr dir = find(above);
  if (dir == nullptr) return not_found(path);
  if (!dir->directory) return not_a_directory(path);
  return std::pair(std::move(dir), std::move(parts.back()));
}

Result<InodePtr> DiskImage::create(const std::string& path) {
  auto place = parent(path);
  if (!place) return std::move(place).error();
  const auto& [dir, name] = *place;
  InodePtr& entry = dir->names[name];
  if (entry == nullptr) {
    entry = make_inode(false);
    pending_.push_back({.dir = dir, .name = name, .set = entry, .unset = {}});
  } else if (entry->directory) {
    return Error(Code::Internal, path + ": Is a directory");
  } else if (!entry->bytes.empty()) {
    used_ -= entry->bytes.size();
    if (!entry->before_truncation) entry->before_truncation = surviving_bytes(*entry, random_);
    entry->bytes.clear();
    entry->unsynced.clear();
  }
  ++entry->opens;
  return entry;
}

Result<InodePtr> DiskImage::open(const std::string& path) {
  InodePtr file = find(path);
  if (file == nullptr) return not_found(path);
  if (file->directory) return Error(Code::Internal, path + ": Is a directory");
  ++file->opens;
  return file;
}

Result<InodePtr> DiskImage::append_to(const std::string& path) { return exists(path) ? open(path) : create(path); }

void DiskImage::close(const InodePtr& file) {
  --file->opens;
  if (!file->linked && file->opens == 0) used_ -= file->bytes.size();
}

Status DiskImage::write(Inode& file, std::size_t offset, BytesView bytes) {
  const std::uint64_t room = policy.bytes_max > used_ ? policy.bytes_max - used_ : 0;
  const std::size_t before = file.bytes.size();
  const std::size_t grown = std::max(before, offset + bytes.size()) - before;
  std::size_t written = bytes.size();
  Status status = Ok{};
  if (grown > room) {
    written -= std::min<std::size_t>(written, grown - static_cast<std::size_t>(room));
    status = Error(Code::Unavailable, "No space left on device");
  } else if (random_.chance(policy.write_error)) {
    written = random_.below(bytes.size() + 1);
    status = Error(Code::Unavailable, "Input/output error");
  }
  if (written == 0) return status;
  Unsynced part{.offset = offset, .size = written, .before = {}};
  if (offset < before) {
    const auto begin = file.bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    part.before.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(written, before - offset)));
  }
  const auto behind = std::upper_bound(file.unsynced.begin(), file.unsynced.end(), part,
                                       [](const Unsynced& a, const Unsynced& b) { return a.offset < b.offset; });
  file.unsynced.insert(behind, std::move(part));
  file.bytes.resize(std::max(before, offset + written));
  std::copy_n(bytes.begin(), written, file.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  used_ += file.bytes.size() - before;
  return status;
}

void DiskImage::unlink(const InodePtr& inode) {
  inode->linked = false;
  if (inode->opens == 0) used_ -= inode->bytes.size();
}

Status DiskImage::rename(const std::string& from, const std::string& to) {
  auto source = parent(from);
  if (!source) return std::move(source).error();
  auto target = parent(to);
  if (!target) return std::move(target).error();
  const auto moved = source->first->names.find(source->second);
  if (moved == source->first->names.end()) return not_found(from);
  const InodePtr inode = moved->second;
  if (inode->directory && holds(*inode, target->first.get())) {
    return Error(Code::Internal, from + ": Can't be moved into itself");
  }
  InodePtr& replaced = target->first->names[target->second];
  if (replaced == inode) return Ok{};
  if (replaced != nullptr) {
    if (replaced->directory != inode->directory) return Error(Code::Internal, to + ": Is of another kind");
    if (!replaced->names.empty()) return Error(Code::Internal, to + ": Directory not empty");
    unlink(replaced);
  }
  replaced = inode;
  source->first->names.erase(source->second);
  pending_.push_back({.dir = target->first, .name = target->second, .set = inode, .unset = {}});
  return Ok{};
}

Status DiskImage::remove(const std::string& path) {
  auto place = parent(path);
  if (!place) return std::move(place).error();
  const auto& [dir, name] = *place;
  const auto entry = dir->names.find(name);
  if (entry == dir->names.end()) return not_found(path);
  const InodePtr inode = entry->second;
  if (!inode->names.empty()) return Error(Code::Internal, path + ": Directory not empty");
  dir->names.erase(entry);
  unlink(inode);
  pending_.push_back({.dir = dir, .name = name, .set = {}, .unset = inode});
  return Ok{};
}

Status DiskImage::make_dirs(const std::string& path) {
  InodePtr at = root_;
  for (const std::string& part : split(path)) {
    InodePtr& entry = at->names[part];
    if (entry == nullptr) {
      entry = make_inode(true);
      pending_.push_back({.dir = at, .name = part, .set = entry, .unset = {}});
    }
    if (!entry->directory) return not_a_directory(path);
    at = entry;
  }
  return Ok{};
}

void DiskImage::erase_durable(const InodePtr& inode) {
  const InodePtr dir = inode->durable_dir.lock();
  if (dir != nullptr) dir->durable.erase(inode->durable_name);
  inode->durable_dir.reset();
}

void DiskImage::apply(const Change& change) {
  Names& names = change.dir->durable;
  const auto old = names.find(change.name);
  if (change.set == nullptr) {
    if (old != names.end() && old->second == change.unset) erase_durable(change.unset);
    return;
  }
  if (old != names.end()) erase_durable(InodePtr(old->second));
  erase_durable(change.set);
  names[change.name] = change.set;
  change.set->durable_dir = change.dir;
  change.set->durable_name = change.name;
}

Status DiskImage::sync_dir(const std::string& path) {
  const InodePtr dir = find(path);
  if (dir == nullptr) return not_found(path);
  if (!dir->directory) return not_a_directory(path);
  if (policy.sync_dir_ignored) return Ok{};
  std::erase_if(pending_, [&dir](const Change& change) {
    if (change.dir != dir) return false;
    apply(change);
    return true;
  });
  return Ok{};
}

Result<std::vector<std::string>> DiskImage::list(const std::string& path) const {
  const InodePtr dir = find(path);
  if (dir == nullptr) return not_found(path);
  if (!dir->directory) return not_a_directory(path);
  std::vector<std::string> names;
  for (const auto& [name, inode] : dir->names) names.push_back(name);
  return names;
}

bool DiskImage::exists(const std::string& path) const { return find(path) != nullptr; }

void DiskImage::crash() {
  ++crashes_;
  const double keep = random_.chance(0.5) ? 0.5 : (random_.chance(0.5) ? 1.0 : 0.0);
  for (const Change& change : pending_) {
    if (random_.chance(keep)) apply(change);
  }
  pending_.clear();
  used_ = 0;
  revert(*root_);
}

void DiskImage::revert(Inode& dir) {
  dir.names = dir.durable;
  for (const auto& [name, inode] : dir.names) {
    inode->linked = true;
    if (inode->directory) {
      revert(*inode);
      continue;
    }
    inode->bytes = surviving_bytes(*inode, random_);
    inode->unsynced.clear();
    inode->before_truncation.reset();
    inode->opens = 0;
    used_ += inode->bytes.size();
  }
}

bool DiskImage::flip_byte(const std::string& path, std::uint64_t offset) {
  const InodePtr file = find(path);
  if (file == nullptr || offset >= file->bytes.size()) return false;
  file->bytes[offset] ^= std::byte{0x10};
  return true;
}

bool DiskImage::truncate(const std::string& path, std::uint64_t size) {
  const InodePtr file = find(path);
  if (file == nullptr || size > file->bytes.size()) return false;
  used_ -= file->bytes.size() - size;
  file->bytes.resize(size);
  sync_bytes(*file);
  file->unsynced.clear();
  return true;
}

}  // namespace holdfast::sim
