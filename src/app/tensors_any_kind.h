// What a tensor file of any kind holds, in the form that one of ours has.
#pragma once

#include <string>

#include "base/result.h"
#include "store/tensor_file.h"
#include "world/disk.h"

namespace holdfast::app {

/// With `verify` every byte is read and checked. Of a kind that is not safetensors the places count as if its tensors
/// lay one behind the other, and there are checksums where the kind has them. Errors: as open_archive and
/// verify_archive.
Result<store::TensorFile> read_any_kind(world::Disk& disk, const std::string& path, bool verify);

}  // namespace holdfast::app
