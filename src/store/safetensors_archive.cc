#include "store/safetensors_archive.h"

#include <algorithm>

#include "store/aliases.h"
#include "store/tensor_file.h"

namespace holdfast::store {
namespace {

class SafetensorsArchive final : public TensorArchive {
 public:
  SafetensorsArchive(OpenTensorFile file, const std::string& path)
      : TensorArchive(path, kSafetensorsKind), file_(std::move(file)) {
    const TensorFile& about = file_.about();
    file_bytes_ = about.header.file_bytes();
    has_checksums_ = about.checksums.has_value();
    metadata_ = about.header.metadata;
  }

  Status list() {
    for (const TensorInfo& each : file_.about().header.tensors) {
      tensors_.push_back({each.name, each.dtype, each.shape, each.end - each.begin, "", ""});
    }
    const Aliases aliases = TRY(aliases_of(metadata_), "list");
    metadata_.erase(kAliasesKey);
    for (const auto& [alias, name] : aliases) {
      const auto stored = std::find_if(tensors_.begin(), tensors_.end(),
                                       [&name = name](const ArchivedTensor& each) { return each.name == name; });
      if (stored == tensors_.end()) continue;
      ArchivedTensor tied = *stored;
      tied.tied_to = std::exchange(tied.name, alias);
      tensors_.push_back(std::move(tied));
    }
    return check_tensors();
  }

 private:
  Status read_elements(std::size_t index, std::span<std::byte> out) override {
    return file_.read({{file_.about().header.tensors.at(index).begin, out}});
  }

  OpenTensorFile file_;
};

}  // namespace

Result<std::unique_ptr<TensorArchive>> open_safetensors_archive(world::FileSource& files, const std::string& path) {
  Result<OpenTensorFile> file = OpenTensorFile::open(files, path);
  if (!file) return std::move(file).error();
  auto archive = std::make_unique<SafetensorsArchive>(*std::move(file), path);
  TRY(archive->list(), path);
  return std::unique_ptr<TensorArchive>(std::move(archive));
}

}  // namespace holdfast::store
