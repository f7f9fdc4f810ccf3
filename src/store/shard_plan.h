// How the tensors of a model are spread over files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace holdfast::store {

/// Tensors by their place in the list that was cut; the order stays.
using ShardPlan = std::vector<std::vector<std::size_t>>;

/// Files of at most `bytes_max` bytes of data; a larger tensor gets one of its own. At least one file.
ShardPlan cut_by_size(std::span<const std::uint64_t> sizes, std::uint64_t bytes_max);

/// So many files, the largest as small as can be. Errors: BadInput (none, or fewer tensors than files).
Result<ShardPlan> cut_into(std::span<const std::uint64_t> sizes, std::size_t files);

/// "5GB" (10^9), "512MiB" (2^20), "1000". Errors: BadInput.
Result<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace holdfast::store
