// Copying models: byte for byte, or spread over other files. What is damaged is not copied.
#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "store/model.h"
#include "store/model_writer.h"

namespace holdfast::store {

/// Copies a tensor file byte for byte, each chunk checked on the way where it has checksums; `path` is there whole or
/// not at all. Errors: as OpenTensorFile::read, as save_tensor_file.
Status copy_tensor_file(const OpenTensorFile& from, world::FileTarget& files, const std::string& path, unsigned threads,
                        const std::string& aside = ".partial");

/// Copies a model into a folder under the names it has, its index last. Errors: as copy_tensor_file; BadInput where the
/// folder holds a model already.
Status copy_model(const Model& from, const ModelPlace& place, const std::string& folder, unsigned threads,
                  const std::string& aside = ".partial");

struct FileCount {
  std::size_t files = 1;
};
struct FileSize {
  std::uint64_t bytes_max = 0;
};
using Cut = std::variant<FileCount, FileSize>;

/// Spreads a model over other files of a folder (as ModelWriter does); `to` ending in ".safetensors" is one file.
/// Needs a few pieces of memory for each thread. Errors: as copy_tensor_file, cut_into, ModelWriter.
struct Resharded {
  std::vector<std::string> files;
  std::set<std::string> disputed;  ///< metadata keys with several values in the old files; that of the first was kept
};
Result<Resharded> reshard_model(const Model& from, const ModelPlace& place, const std::string& to, const Cut& cut,
                                unsigned threads, const std::string& aside = ".partial");

}  // namespace holdfast::store
