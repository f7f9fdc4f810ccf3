// A safetensors file, ours or another's, or a model in several of them, read tensor by tensor.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/archive.h"

namespace holdfast::store {

/// Errors: as Model::open.
Result<std::unique_ptr<TensorArchive>> open_safetensors_archive(world::FileSource& files, const std::string& path);

}  // namespace holdfast::store
