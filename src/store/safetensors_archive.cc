#include "store/safetensors_archive.h"

#include "store/aliases.h"
#include "store/model.h"

namespace holdfast::store {
namespace {

class SafetensorsArchive final : public TensorArchive {
 public:
  SafetensorsArchive(Model model, const std::string& path)
      : TensorArchive(path, kSafetensorsKind), model_(std::move(model)), stored_(model_.tensors()) {
    has_checksums_ = model_.has_checksums();
  }

  Status list() {
    for (const ModelFile& file : model_.files()) {
      file_bytes_ += file.tensors.about().header.file_bytes();
      metadata_.insert(file.tensors.about().header.metadata.begin(), file.tensors.about().header.metadata.end());
    }
    metadata_.erase(kAliasesKey);
    for (const ModelTensor& each : stored_) {
      tensors_.push_back(
          {each.info->name, each.info->dtype, each.info->shape, each.info->end - each.info->begin, "", ""});
    }
    for (const std::string& name : model_.names()) {
      const TensorInfo& stored = *model_.find(name)->info;
      if (stored.name == name) continue;
      tensors_.push_back({name, stored.dtype, stored.shape, stored.end - stored.begin, stored.name, ""});
    }
    return check_tensors();
  }

 private:
  Status read_elements(std::size_t index, std::span<std::byte> out) override {
    const ModelTensor& tensor = index < stored_.size() ? stored_[index] : *model_.find(tensors_[index].tied_to);
    return tensor.file->tensors.read({{tensor.info->begin, out}});
  }

  Model model_;
  std::vector<ModelTensor> stored_;
};

}  // namespace

Result<std::unique_ptr<TensorArchive>> open_safetensors_archive(world::FileSource& files, const std::string& path) {
  Result<Model> model = Model::open(files, path, 1);
  if (!model) return std::move(model).error();
  auto archive = std::make_unique<SafetensorsArchive>(*std::move(model), path);
  TRY(archive->list(), path);
  return std::unique_ptr<TensorArchive>(std::move(archive));
}

}  // namespace holdfast::store
