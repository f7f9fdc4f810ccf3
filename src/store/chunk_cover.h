// Whether boxes of a tensor that is kept in parts cover it, and where their elements go.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "store/slices.h"

namespace holdfast::store {

/// Whether every element of a tensor of `shape`, whose elements 64 bits can count, lies in exactly one of `boxes`.
/// Errors: BadInput, saying which lies outside, overlaps, or that some are in none.
Status check_cover(std::span<const std::uint64_t> shape, std::span<const Box> boxes);

/// Whether the box's elements lie one behind the other in the row-major tensor. It lies inside.
bool is_run(std::span<const std::uint64_t> shape, const Box& box);

/// Where in the row-major tensor the box's first element lies, counted in elements.
std::uint64_t first_element(std::span<const std::uint64_t> shape, const Box& box);

/// Puts `elements`, those of the box row-major, to their places in the tensor.
void place_box(std::span<const std::uint64_t> shape, const Box& box, std::size_t element_bytes, BytesView elements,
               std::span<std::byte> tensor);

}  // namespace holdfast::store
