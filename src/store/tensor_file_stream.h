// A safetensors file with checksums, as save_tensor_file writes it, from tensors that need not all be in memory.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/archive.h"
#include "store/safetensors.h"
#include "world/files.h"

namespace holdfast::store {

/// Asks `fill` for one tensor at a time, by its index in `tensors`; needs as much memory as the largest. Errors: those
/// of `fill` and of save_tensor_file.
Status stream_tensor_file(world::FileTarget& files, const std::string& path, std::span<const TensorInfo> tensors,
                          std::map<std::string, std::string> metadata, const FillTensor& fill,
                          const std::string& aside = ".partial");

}  // namespace holdfast::store
