// The index of a model that is kept in several tensor files: which tensor is in which. Strict in what it reads.
// Format: docs/format-tensors.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace holdfast::store {

constexpr std::uint64_t kIndexBytesMax = std::uint64_t{256} << 20U;
constexpr const char* kIndexSuffix = ".index.json";

struct ShardedIndex {
  std::optional<std::uint64_t> total_size;        ///< bytes of all tensors, as its writer counted them
  std::map<std::string, std::string> weight_map;  ///< tensor -> file, a name inside the folder
  friend bool operator==(const ShardedIndex&, const ShardedIndex&) = default;

  /// Each once, sorted.
  std::vector<std::string> files() const;
};

/// Other metadata is passed over. Errors: BadInput (not JSON, no weight_map, a tensor twice, a file that is not right
/// in the folder), naming the tensor.
Result<ShardedIndex> parse_sharded_index(std::string_view text);

/// Errors: BadInput (a name that is not UTF-8).
Result<std::string> format_sharded_index(const ShardedIndex& index);

}  // namespace holdfast::store
