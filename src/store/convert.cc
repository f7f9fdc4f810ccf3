#include "store/convert.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "store/aliases.h"
#include "store/dcp_folder.h"
#include "store/tensor_file.h"

namespace holdfast::store {
namespace {

struct Contents {
  std::vector<TensorInfo> tensors;
  std::vector<std::size_t> sources;  ///< their indices in the archive
  std::map<std::string, std::string> tied;
  std::uint64_t bytes = 0;
};

Result<Contents> contents_of(const TensorArchive& archive) {
  Contents contents;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < archive.tensors().size(); ++i) {
    const ArchivedTensor& each = archive.tensors()[i];
    all.push_back(i);
    if (!each.tied_to.empty()) {
      contents.tied.emplace(each.name, each.tied_to);
      continue;
    }
    contents.tensors.push_back({each.name, each.dtype, each.shape});
    contents.sources.push_back(i);
    contents.bytes += each.bytes;
  }
  if (Status fits = check_memory(archive, all); !fits) return std::move(fits).error();
  return contents;
}

/// Gives a safetensors writer, which asks for the data buffer from front to back, bytes of one tensor after the other.
class DataStream {
 public:
  DataStream(const Contents& contents, const FillTensor& fill) : fill_(fill) {
    for (std::size_t i = 0; i < contents.tensors.size(); ++i) index_.emplace(contents.tensors[i].name, i);
  }

  Status give(const SafetensorsHeader& header, std::uint64_t begin, std::span<std::byte> out) {
    const std::uint64_t end = begin + out.size();
    auto tensor = std::partition_point(header.tensors.begin(), header.tensors.end(),
                                       [&](const TensorInfo& each) { return each.end <= begin; });
    for (; tensor != header.tensors.end() && tensor->begin < end; ++tensor) {
      const std::uint64_t from = std::max(begin, tensor->begin);
      const std::uint64_t to = std::min(end, tensor->end);
      if (from >= to) continue;
      if (Status held = hold(*tensor); !held) return held;
      std::memcpy(out.data() + (from - begin), memory_->all().data() + (from - tensor->begin), to - from);
    }
    return Ok{};
  }

 private:
  /// The tensor in memory, in place of the one before.
  Status hold(const TensorInfo& tensor) {
    if (memory_ && held_ == tensor.name) return Ok{};
    memory_.reset();
    memory_.emplace(tensor.end - tensor.begin);
    held_ = tensor.name;
    Status filled = fill_(index_.at(tensor.name), memory_->all());
    if (!filled) memory_.reset();
    return filled;
  }

  const FillTensor& fill_;
  std::unordered_map<std::string, std::size_t> index_;
  std::string held_;
  std::optional<AlignedBytes> memory_;
};

Status write_file(world::Disk& disk, const std::string& path, const Contents& contents,
                  std::map<std::string, std::string> metadata, const FillTensor& fill) {
  metadata.emplace("format", "pt");  // transformers reads no file without it
  if (!contents.tied.empty()) metadata[kAliasesKey] = TRY(format_aliases(contents.tied), "second names");
  DataStream stream(contents, fill);
  const DataBytes data = [&](const SafetensorsHeader& header, std::uint64_t begin, std::span<std::byte> out) {
    return stream.give(header, begin, out);
  };
  return write_tensor_file(disk, path, contents.tensors, std::move(metadata), data, /*threads=*/1);
}

/// With the folders above it; all outlive a crash.
Status make_folder(world::Disk& disk, const std::string& path) {
  std::vector<std::string> changed;  // folders that get a new one
  for (std::string folder = path; folder != "/" && !disk.exists(folder); folder = world::parent_of(folder)) {
    changed.push_back(world::parent_of(folder));
  }
  if (Status made = disk.make_dirs(path); !made) return made;
  for (const std::string& folder : changed) {
    if (Status synced = disk.sync_dir(folder); !synced) return synced;
  }
  return Ok{};
}

Status write_folder(world::Disk& disk, const std::string& path, const Contents& contents, const FillTensor& fill) {
  if (disk.exists(path + kDcpMetadataFile)) {
    return Error(Code::Conflict, path + ": holds a checkpoint already; name another folder, or remove this one");
  }
  TRY(make_folder(disk, path), "make the folder");
  return write_dcp_folder(disk, path, contents.tensors, contents.tied, fill);
}

}  // namespace

Status convert(TensorArchive& archive, world::Disk& disk, const std::string& path, WrittenKind kind,
               const Progress& progress) {
  const Contents contents = TRY(contents_of(archive), "convert");
  std::uint64_t done = 0;
  const FillTensor fill = [&](std::size_t i, std::span<std::byte> out) {
    Status read = archive.read(contents.sources[i], out);
    done += out.size();
    if (read && progress) progress(std::min(done, contents.bytes), contents.bytes);  // the first may be read twice
    return read;
  };
  if (kind == WrittenKind::Dcp) return write_folder(disk, path, contents, fill);
  return write_file(disk, path, contents, archive.metadata(), fill);
}

}  // namespace holdfast::store
