// What a tensor file of another kind than safetensors holds, in the form that one of ours has.
#pragma once

#include <string>

#include "base/result.h"
#include "store/tensor_file.h"
#include "world/files.h"

namespace holdfast::app {

/// With `verify` every byte is read and checked. Its places count as if the tensors lay one behind the other, and there
/// are checksums where the kind has them. Errors: as open_archive and verify_archive.
Result<store::TensorFile> read_other_kind(world::FileSource& files, const std::string& path, bool verify,
                                          unsigned threads);

}  // namespace holdfast::app
