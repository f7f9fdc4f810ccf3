// Element types of tensors, by the names safetensors gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace holdfast::store {

/// Bits of one element; none for a name we do not know (the format's list grows).
std::optional<std::uint32_t> dtype_bits(std::string_view dtype);

/// Bytes of a dense tensor. Errors: BadInput (unknown dtype, size beyond 64 bits, elements that fill no whole byte).
Result<std::uint64_t> tensor_bytes(std::string_view dtype, std::span<const std::uint64_t> shape);

/// "[2, 3]", for messages.
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace holdfast::store
