// Some of a file's tensors, and places for them in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/safetensors.h"

namespace holdfast::store {

/// The tensors of those names, in the order of the file. Errors: BadInput, naming one that is not there.
Result<std::vector<TensorInfo>> tensors_named(const SafetensorsHeader& header, const std::vector<std::string>& names);

/// Gives tensors that `begin` where in the file's data buffer they lie places of their own, one behind the other; a
/// large one as far from a page's start as in the file, so that it can be read past the page cache. The bytes they
/// take.
std::uint64_t place_tensors(std::vector<TensorInfo>& tensors, std::uint64_t data_begin);

/// The first multiple of 64 from `next` on, or for large tensors the first place that lies in its page as `in_file`.
std::uint64_t place_for(std::uint64_t next, std::uint64_t size, std::uint64_t in_file);

}  // namespace holdfast::store
