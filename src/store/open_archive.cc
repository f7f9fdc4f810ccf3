// Which kind of file it is, by its first bytes.
#include <algorithm>
#include <array>

#include "store/archive.h"
#include "store/dcp_folder.h"
#include "store/model.h"
#include "store/safetensors_archive.h"
#include "store/tensorizer_file.h"
#include "store/torch_file.h"

namespace holdfast::store {
namespace {

constexpr std::size_t kSignBytes = 9;

bool begins(BytesView bytes, std::string_view sign) { return as_text(bytes).substr(0, sign.size()) == sign; }

Result<std::string> kind_of(world::ReadableFile& file, const std::string& path) {
  std::array<std::byte, kSignBytes> memory{};
  const std::span<std::byte> first = std::span(memory).first(std::min<std::uint64_t>(file.size(), kSignBytes));
  TRY(file.read_at(0, first), path);
  if (begins(first, "PK")) return std::string(kTorchKind);
  if (begins(first, kTensorizerSign)) return std::string(kTensorizerKind);
  if (!begins(first, "\x80\x02\x8a\x0a")) return std::string(kSafetensorsKind);
  return Error(Code::BadInput, path +
                                   ": a file of torch.save in its form before version 1.6, which only torch reads; "
                                   "there, write it anew: torch.save(torch.load(...), ...)");
}

}  // namespace

Result<std::string> archive_kind(world::FileSource& files, const std::string& path) {
  Result<std::unique_ptr<world::ReadableFile>> file = files.open(path);
  if (file) return kind_of(**file, path);
  if (files.open(path + kDcpMetadataFile)) return std::string(kDcpKind);
  for (const char* name : {kModelFile, kModelIndex}) {
    if (files.open(inside(path, name))) return std::string(kSafetensorsKind);
  }
  return std::move(file).error();  // what is there is neither a file nor a folder of tensors
}

Result<std::unique_ptr<TensorArchive>> open_archive(world::FileSource& files, const std::string& path,
                                                    const std::optional<std::string>& secret) {
  Result<std::string> told = archive_kind(files, path);
  if (!told) return std::move(told).error();
  const std::string kind = *std::move(told);
  if (secret && kind != kTensorizerKind)
    return Error(Code::BadInput, path + ": is not encrypted; load it without a key");
  if (kind == kDcpKind) {
    const auto metadata = TRY(files.open(path + kDcpMetadataFile), "open");
    return open_dcp_folder(files, path, *metadata);
  }
  if (kind == kSafetensorsKind) return open_safetensors_archive(files, path);
  std::unique_ptr<world::ReadableFile> file = TRY(files.open(path), "open");
  if (kind == kTorchKind) return open_torch_file(std::move(file), path);
  return open_tensorizer_file(std::move(file), path, secret);
}

}  // namespace holdfast::store
