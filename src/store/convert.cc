#include "store/convert.h"

#include "store/dcp_folder.h"
#include "store/safetensors_archive.h"
#include "store/tensor_file_stream.h"

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

Status write_folder(world::Disk& disk, const std::string& path, const Contents& contents, const FillTensor& fill) {
  if (disk.exists(path + kDcpMetadataFile)) {
    return Error(Code::Conflict, path + ": holds a checkpoint already; name another folder, or remove this one");
  }
  TRY(disk.make_dirs(path), "make the folder");
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
    if (read && progress) progress(done, contents.bytes);
    return read;
  };
  if (kind == WrittenKind::Dcp) return write_folder(disk, path, contents, fill);
  std::map<std::string, std::string> metadata = archive.metadata();
  metadata.emplace("format", "pt");  // transformers reads no file without it
  if (!contents.tied.empty()) metadata[kAliasesKey] = format_aliases(contents.tied);
  return stream_tensor_file(disk, path, contents.tensors, std::move(metadata), fill);
}

}  // namespace holdfast::store
