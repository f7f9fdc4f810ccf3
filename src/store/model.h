// A model as programs hand it on: one tensor file, or several with an index (docs/format-tensors.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sharded_index.h"
#include "store/tensor_file.h"
#include "world/files.h"

namespace holdfast::store {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kModelIndex = "model.safetensors.index.json";

/// `folder` + "/" + `name`.
std::string inside(const std::string& folder, const std::string& name);

struct ModelFile {
  std::string name;  ///< inside the model's folder
  OpenTensorFile tensors;
};

/// A tensor and the file that holds it.
struct ModelTensor {
  const ModelFile* file = nullptr;
  const TensorInfo* info = nullptr;
};

/// Its files stay open, so what is read belongs together even where the model is replaced meanwhile.
class Model {
 public:
  /// `path`: a tensor file, an index (its name ends with ".json"), or a folder that holds model.safetensors or
  /// model.safetensors.index.json; of both, the former counts, as it does elsewhere. Reads all headers. Errors name
  /// the file: NotFound, BadInput (the index is wrong, or a tensor is not where it says, or in two files), Corrupt,
  /// Unavailable.
  static Result<Model> open(world::FileSource& files, const std::string& path, unsigned threads);

  /// "" where it is one file.
  const std::string& index_path() const { return index_path_; }
  std::string index_name() const;  ///< inside the folder
  /// As it was read.
  const std::string& index_text() const { return index_text_; }
  const std::vector<ModelFile>& files() const { return *files_; }
  /// In the order of the files, and in each by place.
  std::vector<ModelTensor> tensors() const;
  /// Of all tensors, with second names; sorted.
  std::vector<std::string> names() const;
  /// By its name or that of one tied to it.
  std::optional<ModelTensor> find(const std::string& name) const;
  std::uint64_t data_bytes() const;
  /// Reads every byte and checks it where there are checksums. Errors: as verify_tensor_file.
  Status verify(unsigned threads) const;
  bool has_checksums() const;  ///< all of its files

 private:
  Status read_files(world::FileSource& files, const std::string& folder, const std::vector<std::string>& names,
                    unsigned threads);
  Status check(const ShardedIndex& index);
  static Result<Model> open_file(world::FileSource& files, const std::string& path);
  static Result<Model> open_index(world::FileSource& files, const std::string& path, std::string text,
                                  unsigned threads);
  Status find_places();

  std::string index_path_, index_text_;
  std::unique_ptr<std::vector<ModelFile>> files_ = std::make_unique<std::vector<ModelFile>>();  ///< never moves
  std::map<std::string, ModelTensor, std::less<>> places_;                                      ///< with second names
};

/// Whether a file can be opened. A place may hide what is missing behind "denied", as S3 does. Errors: as open.
Result<bool> is_there(world::FileSource& files, const std::string& path);
/// The whole of a small file. Errors: as open; BadInput where it is larger than an index may be.
Result<std::string> read_index_text(world::FileSource& files, const std::string& path);
/// Puts it in place whole or not at all, so that on Ok it outlives a crash.
Status write_index_text(world::FileTarget& files, const std::string& path, const std::string& text,
                        const std::string& aside);

}  // namespace holdfast::store
