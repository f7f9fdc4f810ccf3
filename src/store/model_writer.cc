#include "store/model_writer.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/check.h"
#include "store/dtype.h"
#include "store/model.h"
#include "store/sharded_index.h"

namespace holdfast::store {
namespace {

/// "model-00001-of-00003.safetensors"; later generations: "model.2-...".
std::string shard_name(unsigned generation, std::size_t file, std::size_t files) {
  std::array<char, 64> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "-%05zu-of-%05zu.safetensors", file + 1, files);
  return (generation == 1 ? "model" : "model." + std::to_string(generation)) + numbers.data();
}

std::size_t digits(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

/// Whether shard_name gives such names.
bool is_shard_name(std::string_view name) {
  if (!name.starts_with("model")) return false;
  name.remove_prefix(5);
  if (name.starts_with('.')) name.remove_prefix(1 + digits(name.substr(1)));
  if (!name.starts_with('-') || digits(name.substr(1)) < 5) return false;
  name.remove_prefix(1 + digits(name.substr(1)));
  if (!name.starts_with("-of-") || digits(name.substr(4)) < 5) return false;
  name.remove_prefix(4 + digits(name.substr(4)));
  return name == ".safetensors";
}

}  // namespace

Status make_durable_dirs(world::Disk& disk, const std::string& folder) {
  std::vector<std::string> fresh;
  for (std::string path = folder; path != "/" && !disk.exists(path); path = world::parent_of(path)) {
    fresh.push_back(path);
  }
  if (Status made = disk.make_dirs(folder); !made) return made;
  for (const std::string& path : fresh) {
    if (Status synced = disk.sync_dir(world::parent_of(path)); !synced) return synced;
  }
  return Ok{};
}

Result<ModelWriter> ModelWriter::begin(const ModelPlace& place, const std::string& folder, ModelContent content,
                                       const std::string& aside) {
  CHECK(!content.plan.empty());
  ModelWriter writer(place, folder, std::move(content), aside);
  const std::string doing = "save " + folder;
  TRY(writer.check_names(), doing);
  if (place.disk != nullptr) TRY(make_durable_dirs(*place.disk, folder), doing);
  TRY(writer.look_around(), doing);
  writer.choose_names();
  return writer;
}

ModelWriter::ModelWriter(ModelWriter&& other) noexcept
    : place_(other.place_),
      folder_(std::move(other.folder_)),
      content_(std::move(other.content_)),
      aside_(std::move(other.aside_)),
      names_(std::move(other.names_)),
      written_(std::exchange(other.written_, {})),
      old_shards_(std::move(other.old_shards_)),
      old_index_(other.old_index_),
      old_file_(other.old_file_) {}

ModelWriter::~ModelWriter() {
  if (place_.disk == nullptr) return;
  for (const std::string& name : written_) (void)place_.disk->remove(path(name));
}

std::string ModelWriter::path(const std::string& name) const { return inside(folder_, name); }

/// Within one file the format sees to it.
Status ModelWriter::check_names() const {
  std::set<std::string_view> names;
  for (const TensorInfo& tensor : content_.tensors) {
    if (!names.insert(tensor.name).second) return Error(Code::BadInput, "duplicate tensor " + tensor.name);
  }
  return Ok{};
}

/// Learns what the folder holds.
Status ModelWriter::look_around() {
  const std::string index = path(kModelIndex);
  old_file_ = TRY(is_there(place_.source, path(kModelFile)), "look for an older model");
  old_index_ = TRY(is_there(place_.source, index), "look for an older model");
  const bool in_the_way = whole() ? old_index_ : old_file_;
  if (in_the_way && place_.disk == nullptr) {
    return Error(Code::BadInput, (whole() ? index : path(kModelFile)) +
                                     " would be taken for a part of the new model, and can't be removed from here; "
                                     "remove it, or name another folder");
  }
  if (!old_index_) return Ok{};
  const std::string text = TRY(read_index_text(place_.source, index), "read the old index");
  const auto parsed = parse_sharded_index(text);
  if (!parsed) {
    return Error(Code::BadInput, index + ": " + parsed.error().message() + "; remove it, or name another folder");
  }
  for (const std::string& name : parsed->files()) old_shards_.insert(name);
  return Ok{};
}

void ModelWriter::choose_names() {
  for (unsigned generation = 1; names_.empty(); ++generation) {
    for (std::size_t i = 0; i < files(); ++i) {
      names_.push_back(whole() ? kModelFile : shard_name(generation, i, files()));
    }
    const auto taken = [&](const std::string& name) { return !whole() && old_shards_.contains(name); };
    if (std::any_of(names_.begin(), names_.end(), taken)) names_.clear();
  }
}

std::vector<TensorInfo> ModelWriter::infos(std::size_t file) const {
  std::vector<TensorInfo> infos;
  for (const std::size_t tensor : tensors(file)) infos.push_back(content_.tensors[tensor]);
  return infos;
}

Result<std::map<std::string, std::string>> ModelWriter::metadata_of(std::size_t file) const {
  std::set<std::string_view> stored;
  for (const std::size_t tensor : tensors(file)) stored.insert(content_.tensors[tensor].name);
  Aliases aliases;
  for (const auto& [alias, name] : content_.aliases) {
    if (stored.contains(name)) aliases.emplace(alias, name);
  }
  std::map<std::string, std::string> metadata = content_.metadata;
  if (!aliases.empty()) metadata[kAliasesKey] = TRY(format_aliases(aliases), "save " + folder_);
  return metadata;
}

Status ModelWriter::write(std::size_t file, std::span<const TensorData> tensors, unsigned threads) {
  auto metadata = TRY(metadata_of(file), "metadata");
  if (auto done = save_tensor_file(place_.target, path(names_[file]), tensors, std::move(metadata), threads, aside_);
      !done) {
    return std::move(done).error();
  }
  if (!whole()) written_.push_back(names_[file]);
  return Ok{};
}

Status ModelWriter::write(std::size_t file, const DataBytes& data, unsigned threads) {
  auto metadata = TRY(metadata_of(file), "metadata");
  if (auto done =
          write_tensor_file(place_.target, path(names_[file]), infos(file), std::move(metadata), data, threads, aside_);
      !done) {
    return std::move(done).error();
  }
  if (!whole()) written_.push_back(names_[file]);
  return Ok{};
}

Status ModelWriter::write_index() {
  ShardedIndex index{.total_size = 0, .weight_map = {}};
  for (std::size_t file = 0; file < files(); ++file) {
    for (const TensorInfo& tensor : infos(file)) {
      *index.total_size += TRY(tensor_bytes(tensor.dtype, tensor.shape), "tensor " + tensor.name);
      index.weight_map.emplace(tensor.name, names_[file]);
    }
  }
  const std::string text = TRY(format_sharded_index(index), "index");
  written_.clear();  // from here on the index may be in place, whatever is reported: its files must stay
  return write_index_text(place_.target, path(kModelIndex), text, aside_);
}

Status ModelWriter::remove(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (Status gone = place_.disk->remove(path(name)); !gone) return gone;
  }
  return place_.disk->sync_dir(folder_);
}

Status ModelWriter::commit() {
  const std::string doing = "save " + folder_;
  if (whole()) {
    if (old_index_) TRY(remove({kModelIndex}), doing);
  } else {
    TRY(write_index(), doing + ": " + kModelIndex);
    if (old_file_) TRY(remove({kModelFile}), doing);
  }
  remove_old();
  return Ok{};
}

/// What is left of older models and of saves that were killed. They harm nobody who reads the index, so this may fail.
void ModelWriter::remove_old() {
  if (place_.disk == nullptr) return;
  std::set<std::string> old = old_shards_;
  if (const auto names = place_.disk->list(folder_); names) {
    std::copy_if(names->begin(), names->end(), std::inserter(old, old.end()),
                 [](const std::string& name) { return is_shard_name(name); });
  }
  for (const std::string& name : names_) old.erase(name);
  for (const std::string& name : old) (void)place_.disk->remove(path(name));
}

}  // namespace holdfast::store
