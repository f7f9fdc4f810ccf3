#include "store/model.h"

#include <algorithm>
#include <mutex>

#include "store/aliases.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

constexpr const char* kFileSuffix = ".safetensors";
constexpr const char* kMend = "; fetch or write the model again";

Error wrong(const std::string& path, const std::string& what) { return {Code::BadInput, path + ": " + what + kMend}; }

bool not_there(const Error& error) { return error.code() == Code::NotFound || error.code() == Code::Denied; }

/// What a disk says of a folder that is opened as a file is Internal.
bool may_be_a_folder(const Error& error) { return not_there(error) || error.code() == Code::Internal; }

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string name_of(const std::string& path) { return path.substr(folder_of(path).size()); }

}  // namespace

std::string inside(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + '/' + name;
}

Result<bool> is_there(world::FileSource& files, const std::string& path) {
  const auto file = files.open(path);
  if (file || not_there(file.error())) return file.has_value();
  return file.error();
}

Result<std::string> read_index_text(world::FileSource& files, const std::string& path) {
  const std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  if (file->size() > kIndexBytesMax) {
    return wrong(path, std::to_string(file->size()) + " bytes are more than an index has");
  }
  std::string text(file->size(), '\0');
  TRY(file->read_at(0, std::as_writable_bytes(std::span(text))), path);
  return text;
}

Status write_index_text(world::FileTarget& files, const std::string& path, const std::string& text,
                        const std::string& aside) {
  const world::Pieces one = {.head = text.size(), .piece = text.size(), .total = text.size()};
  const auto file = TRY(files.begin(path, aside, one), "create");
  TRY(file->write(0, as_bytes(text)), "write");
  return file->commit();
}

Result<Model> Model::open(world::FileSource& files, const std::string& path, unsigned threads) {
  if (path.ends_with(".json")) return open_index(files, path, TRY(read_index_text(files, path), "index"), threads);
  const bool is_file = path.ends_with(kFileSuffix) || path.find('?') != std::string::npos;
  std::optional<Result<Model>> file;
  if (is_file) {
    file = open_file(files, path);
    if (*file || !may_be_a_folder(file->error())) return *std::move(file);
  }
  if (Result<Model> one = open_file(files, inside(path, kModelFile)); one || !not_there(one.error())) return one;
  const std::string index = inside(path, kModelIndex);
  if (auto text = read_index_text(files, index); text || !not_there(text.error())) {
    return open_index(files, index, TRY(std::move(text), "index"), threads);
  }
  if (!is_file) file = open_file(files, path);
  if (*file || file->error().code() != Code::Internal) return *std::move(file);
  return Error(Code::BadInput,
               path + ": holds neither " + kModelFile + " nor " + kModelIndex + "; name the index or the file itself");
}

Result<Model> Model::open_file(world::FileSource& files, const std::string& path) {
  Model model;
  auto file = OpenTensorFile::open(files, path);
  if (!file) return std::move(file).error();
  model.files_->push_back({name_of(path), *std::move(file)});
  if (Status good = model.find_places(); !good) return std::move(good).error();
  return model;
}

Result<Model> Model::open_index(world::FileSource& files, const std::string& path, std::string text, unsigned threads) {
  const auto index = parse_sharded_index(text);
  if (!index) return wrong(path, index.error().message());
  Model model;
  model.index_path_ = path;
  model.index_text_ = std::move(text);
  TRY(model.read_files(files, folder_of(path), index->files(), threads), path);
  if (Status good = model.find_places(); !good) return std::move(good).error();
  if (Status good = model.check(*index); !good) return std::move(good).error();
  return model;
}

Status Model::read_files(world::FileSource& files, const std::string& folder, const std::vector<std::string>& names,
                         unsigned threads) {
  std::vector<std::optional<Result<OpenTensorFile>>> opened(names.size());
  world::parallel_for(threads, names.size(),
                      [&](std::size_t i) { opened[i] = OpenTensorFile::open(files, inside(folder, names[i])); });
  for (std::size_t i = 0; i < names.size(); ++i) {
    Result<OpenTensorFile>& file = *opened[i];
    if (!file) {
      if (file.error().code() != Code::NotFound) return std::move(file).error();
      return Error(Code::BadInput, file.error().message() + kMend);
    }
    files_->push_back({names[i], *std::move(file)});
  }
  return Ok{};
}

Status Model::find_places() {
  const auto put = [&](const std::string& name, const ModelFile& file, const TensorInfo* info) {
    const auto [place, fresh] = places_.try_emplace(name, ModelTensor{&file, info});
    if (fresh || place->second.file == &file) return Status(Ok{});
    return Status(
        wrong(index_path_, "tensor " + name + " is both in " + place->second.file->name + " and in " + file.name));
  };
  for (const ModelFile& file : *files_) {
    for (const TensorInfo& tensor : file.tensors.about().header.tensors) {
      if (Status good = put(tensor.name, file, &tensor); !good) return good;
    }
  }
  for (const ModelFile& file : *files_) {
    const Aliases aliases = TRY(aliases_of(file.tensors.about().header.metadata), file.tensors.path());
    for (const auto& [alias, stored] : aliases) {
      const auto place = places_.find(stored);
      if (place == places_.end() || place->second.file != &file) continue;  // tied to nothing: passed over
      if (Status good = put(alias, file, place->second.info); !good) return good;
    }
  }
  return Ok{};
}

Status Model::check(const ShardedIndex& index) {
  for (const auto& [tensor, file] : index.weight_map) {
    const auto place = places_.find(tensor);
    if (place != places_.end() && place->second.file->name == file) continue;
    const std::string where = place == places_.end() ? "in none of the files" : "in " + place->second.file->name;
    return wrong(index_path_, "tensor " + tensor + " is not in " + file + " but " + where);
  }
  return Ok{};
}

std::string Model::index_name() const { return name_of(index_path_); }

std::vector<std::string> Model::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

std::vector<ModelTensor> Model::tensors() const {
  std::vector<ModelTensor> all;
  for (const ModelFile& file : *files_) {
    for (const TensorInfo& tensor : file.tensors.about().header.tensors) all.push_back({&file, &tensor});
  }
  return all;
}

std::optional<ModelTensor> Model::find(const std::string& name) const {
  const auto place = places_.find(name);
  if (place == places_.end()) return std::nullopt;
  return place->second;
}

std::uint64_t Model::data_bytes() const {
  std::uint64_t bytes = 0;
  for (const ModelFile& file : *files_) bytes += file.tensors.about().header.data_bytes();
  return bytes;
}

Status Model::verify(unsigned threads) const {
  for (const ModelFile& file : *files_) {
    if (Status good = file.tensors.verify(threads); !good) return good;
  }
  return Ok{};
}

bool Model::has_checksums() const {
  return std::all_of(files_->begin(), files_->end(),
                     [](const ModelFile& file) { return file.tensors.about().checksums.has_value(); });
}

}  // namespace holdfast::store
