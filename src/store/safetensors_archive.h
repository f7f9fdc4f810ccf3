// A safetensors file, ours or another's, read tensor by tensor.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/archive.h"

namespace holdfast::store {

/// Errors: as read_tensor_file.
Result<std::unique_ptr<TensorArchive>> open_safetensors_archive(world::FileSource& files, const std::string& path);

}  // namespace holdfast::store
