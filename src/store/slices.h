// Tensors of a file that are parts of larger ones: where each lies in the whole. Travels in the file's metadata under
// kSlicesKey, which other readers pass over. Format: docs/format-tensors.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/safetensors.h"

namespace holdfast::store {

constexpr const char* kSlicesKey = "holdfast.slices";

/// Elements of a tensor: from `begin` on, so many in each dimension.
struct Box {
  std::vector<std::uint64_t> begin;
  std::vector<std::uint64_t> shape;
  friend bool operator==(const Box&, const Box&) = default;
};

/// What they share; nothing where they have no element in common. Both have as many dimensions.
std::optional<Box> intersection(const Box& a, const Box& b);
/// Of `shape`, saturating at 2^64 - 1.
std::uint64_t element_count(const std::vector<std::uint64_t>& shape);

struct Slice {
  std::string of;                    ///< name of the whole tensor
  std::vector<std::uint64_t> shape;  ///< of the whole tensor
  std::vector<std::uint64_t> begin;  ///< of the part in it; the part's shape is its own in the file
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// By the part's name in the file.
using Slices = std::map<std::string, Slice>;

/// "w" in a file that holds the part of it which begins at [2, 0]: "w[2,0]".
std::string slice_name(const std::string& of, const std::vector<std::uint64_t>& begin);

/// Errors: BadInput (names that are not UTF-8).
Result<std::string> format_slices(const Slices& slices);

/// Those of `header`: none where it has none. Errors: BadInput (not as format_slices writes it, of a tensor that the
/// file does not hold, or not within the whole).
Result<Slices> slices_of(const SafetensorsHeader& header);

}  // namespace holdfast::store
