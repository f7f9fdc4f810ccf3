#include "world/object_tree.h"

#include <set>

namespace holdfast::world {
namespace {

constexpr std::size_t kObjectsMax = 10'000'000;
constexpr std::string_view kUnfinished = ".partial";

}  // namespace

Result<std::string> ObjectTree::key_of(const std::string& path) const {
  if (path.size() > root_.size() && path.starts_with(root_)) return path.substr(root_.size());
  return Error(Code::BadInput, path + ": not a file of " + root_ + "; write " + root_ + "KEY");
}

Result<std::unique_ptr<ReadableFile>> ObjectTree::open(const std::string& path) {
  return store_.open(TRY(key_of(path), "open"));
}

std::uint64_t ObjectTree::piece_bytes(const std::string& /*path*/, std::uint64_t total) const {
  return store_.piece_bytes(total);
}

Result<std::unique_ptr<NewFile>> ObjectTree::begin(const std::string& path, const std::string& /*aside*/,
                                                   const Pieces& pieces) {
  return store_.begin(TRY(key_of(path), "create"), pieces, {});
}

Status ObjectTree::write_new(const std::string& path, BytesView bytes) {
  const std::string key = TRY(key_of(path), "create");
  TRY(store_.put(key, bytes, {.absent = true, .etag = ""}), "create");
  return Ok{};
}

Status ObjectTree::remove(const std::string& path) {
  const std::string key = TRY(key_of(path), "remove");
  if (!key.ends_with(kUnfinished)) return store_.remove(key);
  const std::string finished = key.substr(0, key.size() - kUnfinished.size());
  const std::vector<UnfinishedObject> begun = TRY(store_.unfinished(finished, kObjectsMax), "remove");
  for (const UnfinishedObject& object : begun) {
    if (object.key == finished) TRY(store_.abandon(object), "remove");
  }
  return store_.remove(key);
}

Result<std::vector<std::string>> ObjectTree::list(const std::string& path) {
  std::string prefix = path + (path.ends_with('/') ? "" : "/");
  prefix = prefix == root_ ? "" : TRY(key_of(prefix), "list");
  std::set<std::string> names;
  const auto add = [&](const std::string& key, std::string_view mark) {
    const std::size_t slash = key.find('/', prefix.size());
    if (slash != std::string::npos) {
      names.insert(key.substr(prefix.size(), slash - prefix.size()));
    } else if (key.size() > prefix.size()) {
      names.insert(key.substr(prefix.size()).append(mark));
    }
  };
  // Uploads first: one that is finished in between is then seen as an object, or twice, but never not at all.
  const std::vector<UnfinishedObject> begun = TRY(store_.unfinished(prefix, kObjectsMax), "list " + path);
  const std::vector<ObjectInfo> objects = TRY(store_.list(prefix, kObjectsMax), "list " + path);
  for (const UnfinishedObject& object : begun) add(object.key, kUnfinished);
  for (const ObjectInfo& object : objects) add(object.key, "");
  if (names.empty()) return Error(Code::NotFound, path + ": there is nothing");
  return std::vector<std::string>(names.begin(), names.end());
}

bool ObjectTree::exists(const std::string& path) {
  const auto key = key_of(path);
  return key && static_cast<bool>(store_.open(*key));
}

}  // namespace holdfast::world
