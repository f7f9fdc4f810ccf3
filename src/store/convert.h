// From any kind of tensor file that is read here to one that is written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "store/archive.h"
#include "world/disk.h"

namespace holdfast::store {

enum class WrittenKind { Safetensors, Dcp };

/// Bytes of tensors written so far, and in all.
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

/// Writes all tensors of `archive` to `path`, whole or not at all: a file, replaced where there is one, or a folder,
/// made where there is none. Tied tensors are written once and stay tied; what is no tensor is left out. Needs as much
/// memory as the largest tensor. `progress` may be empty. Errors: those of reading; BadInput (what the format has no
/// room for), Conflict (the folder holds a checkpoint), Unavailable.
Status convert(TensorArchive& archive, world::Disk& disk, const std::string& path, WrittenKind kind,
               const Progress& progress);

}  // namespace holdfast::store
