#include "store/model_copy.h"

#include <algorithm>
#include <optional>

#include "store/aligned_bytes.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

Status copy_pieces(const OpenTensorFile& from, world::NewFile& file, const world::Pieces& pieces, unsigned threads) {
  return world::parallel_try(threads, pieces.count(), [&](std::size_t i) -> Status {
    AlignedBytes memory(pieces.end(i) - pieces.begin(i));
    std::span<std::byte> data = memory.all();
    if (i == 0) {
      const Bytes prefix = TRY(from.prefix(), "header");
      std::copy(prefix.begin(), prefix.end(), data.begin());
      data = data.subspan(prefix.size());
    }
    const std::uint64_t begin = i == 0 ? 0 : pieces.begin(i) - from.about().header.data_begin;
    if (Status read = from.read({{begin, data}}); !read) return read;
    return file.write(i, memory.all());
  });
}

Result<bool> is_there(world::FileSource& files, const std::string& path) {
  const auto file = files.open(path);
  if (file) return true;
  if (file.error().code() == Code::NotFound || file.error().code() == Code::Denied) return false;
  return file.error();
}

/// Nothing of a copy may take the place of a file that another index names: until the new index is there, readers would
/// find a mix. Nor may it lie beside a file that readers prefer, or be one that they prefer to an index.
Status refuse_old_model(world::FileSource& files, const Model& from, const std::string& folder) {
  const std::string index = inside(folder, kModelIndex);
  const auto refuse = [](const std::string& path) {
    return Error(Code::BadInput, path + " is there already; remove that model or name another folder");
  };
  const bool old_index = TRY(is_there(files, index), "look for an older model");
  if (!from.index_path().empty()) {
    const std::string own = inside(folder, from.index_name());
    if (old_index) return refuse(index);
    for (const std::string& path : {inside(folder, kModelFile), own}) {
      if (TRY(is_there(files, path), "look for an older model")) return refuse(path);
    }
    return Ok{};
  }
  const std::string& name = from.files().front().name;
  if (!old_index) return Ok{};
  const auto old = parse_sharded_index(TRY(read_index_text(files, index), "read the old index"));
  const std::vector<std::string> taken = old ? old->files() : std::vector{name};
  if (name == kModelFile || std::find(taken.begin(), taken.end(), name) != taken.end()) return refuse(index);
  return Ok{};
}

/// Fills the data of a new file from the files of `from`.
Status gather(const Model& from, const SafetensorsHeader& header, std::uint64_t begin, std::span<std::byte> out) {
  std::map<const ModelFile*, std::vector<DataRange>> wanted;
  const std::uint64_t end = begin + out.size();
  const auto first = std::partition_point(header.tensors.begin(), header.tensors.end(),
                                          [&](const TensorInfo& tensor) { return tensor.end <= begin; });
  for (auto tensor = first; tensor != header.tensors.end() && tensor->begin < end; ++tensor) {
    const std::uint64_t from_byte = std::max(begin, tensor->begin);
    const std::uint64_t to_byte = std::min(end, tensor->end);
    if (from_byte >= to_byte) continue;
    const ModelTensor place = *from.find(tensor->name);
    wanted[place.file].push_back(
        {place.info->begin + (from_byte - tensor->begin), out.subspan(from_byte - begin, to_byte - from_byte)});
  }
  for (auto& [file, ranges] : wanted) {
    if (Status read = file->tensors.read(std::move(ranges)); !read) return read;
  }
  return Ok{};
}

/// Everything of `from` but how it is cut.
Result<ModelContent> content_of(const Model& from, std::set<std::string>& disputed) {
  ModelContent content;
  for (const ModelFile& file : from.files()) {
    const TensorFile& about = file.tensors.about();
    for (const TensorInfo& tensor : about.header.tensors)
      content.tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
    for (const auto& [key, value] : about.header.metadata) {
      if (key == kAliasesKey) continue;
      const auto [kept, fresh] = content.metadata.emplace(key, value);
      if (!fresh && kept->second != value) disputed.insert(key);
    }
    const Aliases aliases = TRY(aliases_of(about.header.metadata), file.tensors.path());
    for (const auto& [alias, stored] : aliases) {
      const auto named = from.find(alias);
      if (named && named->info->name == stored && alias != stored) content.aliases.emplace(alias, stored);
    }
  }
  return content;
}

Result<ShardPlan> cut_up(const ModelContent& content, const Model& from, const Cut& cut) {
  std::vector<std::uint64_t> sizes;
  for (const TensorInfo& tensor : content.tensors) {
    const TensorInfo& stored = *from.find(tensor.name)->info;
    sizes.push_back(stored.end - stored.begin);
  }
  if (const auto* count = std::get_if<FileCount>(&cut)) return cut_into(sizes, count->files);
  return cut_by_size(sizes, std::get<FileSize>(cut).bytes_max);
}

}  // namespace

Status copy_tensor_file(const OpenTensorFile& from, world::FileTarget& files, const std::string& path, unsigned threads,
                        const std::string& aside) {
  const SafetensorsHeader& header = from.about().header;
  const world::Pieces pieces = {
      .head = header.data_begin, .piece = files.piece_bytes(path, header.file_bytes()), .total = header.file_bytes()};
  const auto file = TRY(files.begin(path, aside, pieces), "create");
  TRY(copy_pieces(from, *file, pieces, threads), "copy to " + path);
  return file->commit();
}

Status copy_model(const Model& from, const ModelPlace& place, const std::string& folder, unsigned threads,
                  const std::string& aside) {
  if (place.disk != nullptr) TRY(make_durable_dirs(*place.disk, folder), "copy");
  TRY(refuse_old_model(place.source, from, folder), "copy");
  std::vector<std::string> copied;
  for (const ModelFile& file : from.files()) {
    const std::string path = inside(folder, file.name);
    Status done = copy_tensor_file(file.tensors, place.target, path, threads, aside);
    if (done) {
      copied.push_back(path);
      continue;
    }
    for (const std::string& each : copied) {
      if (place.disk != nullptr) (void)place.disk->remove(each);  // best effort: the error that counts is the first one
    }
    return std::move(done).error().in("copy");
  }
  if (from.index_path().empty()) return Ok{};
  TRY(write_index_text(place.target, inside(folder, from.index_name()), from.index_text(), aside), "copy the index");
  return Ok{};
}

Result<Resharded> reshard_model(const Model& from, const ModelPlace& place, const std::string& to, const Cut& cut,
                                unsigned threads, const std::string& aside) {
  Resharded done;
  ModelContent content = TRY(content_of(from, done.disputed), "reshard");
  content.plan = TRY(cut_up(content, from, cut), "reshard");
  const DataBytes data = [&](const SafetensorsHeader& header, std::uint64_t begin, std::span<std::byte> out) {
    return gather(from, header, begin, out);
  };
  if (to.ends_with(".safetensors")) {
    if (content.plan.size() > 1) {
      return Error(Code::BadInput, to + ": " + std::to_string(content.plan.size()) +
                                       " files don't fit under the name of one; name a folder");
    }
    if (!content.aliases.empty()) {
      content.metadata[kAliasesKey] = TRY(format_aliases(content.aliases), "reshard");
    }
    TRY(write_tensor_file(place.target, to, content.tensors, content.metadata, data, threads, aside), "reshard");
    done.files = {to};
    return done;
  }
  ModelWriter writer = TRY(ModelWriter::begin(place, to, std::move(content), aside), "reshard");
  for (std::size_t file = 0; file < writer.files(); ++file) {
    TRY(writer.write(file, data, threads), "reshard");
    done.files.push_back(inside(to, writer.name(file)));
  }
  TRY(writer.commit(), "reshard");
  return done;
}

}  // namespace holdfast::store
