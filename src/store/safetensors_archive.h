// A safetensors file, ours or another's, read tensor by tensor.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/archive.h"

namespace holdfast::store {

constexpr const char* kAliasesKey = "holdfast.aliases";  ///< in the metadata: second name -> the one it is stored under

/// `file` is that of `path`. Errors: as read_tensor_file.
Result<std::unique_ptr<TensorArchive>> open_safetensors_archive(world::FileSource& files,
                                                                std::unique_ptr<world::ReadableFile> file,
                                                                const std::string& path);

/// A JSON object of texts, as the metadata has it. Errors: BadInput.
Result<std::map<std::string, std::string>> parse_aliases(const std::string& text);
std::string format_aliases(const std::map<std::string, std::string>& aliases);

}  // namespace holdfast::store
