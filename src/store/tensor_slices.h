// Parts of tensors: what one rank of several needs, and tensors read into memory that is there already.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/slices.h"
#include "store/tensor_file.h"
#include "world/files.h"

namespace holdfast::store {

struct TensorSlice {
  std::string name;
  Box box;
};

/// Reads no byte but those of the slices. A chunk of which all bytes are wanted is checked, where the file has
/// checksums; what lies in others can't be. The tensors of the answer have the slices' shapes and come as asked.
/// Errors: as load_tensor_file; BadInput for a box beyond its tensor, or one that begins or ends within a byte.
Result<LoadedTensors> load_tensor_slices(world::FileSource& files, const std::string& path,
                                         const std::vector<TensorSlice>& slices, const ReadPolicy& policy);

struct TensorPlacement {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::span<std::byte> bytes;
};

/// Reads tensors into memory of the caller's, which after an error holds anything. Errors: as load_tensor_file;
/// BadInput where dtype or shape are not the file's.
Result<TensorFile> load_tensors_into(world::FileSource& files, const std::string& path,
                                     const std::vector<TensorPlacement>& places, const ReadPolicy& policy);

}  // namespace holdfast::store
