// Elements of tensors as numbers: all types of dtype.h, exactly (a long double holds 64-bit integers).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace holdfast::store {

/// Numbers that an element is made of: 2 for complex ones, real and imaginary; else 1.
unsigned parts_of(std::string_view dtype);

/// All elements of `bytes`, which hold whole ones. Elements narrower than a byte fill it from its low bits.
std::vector<long double> decode_elements(std::string_view dtype, BytesView bytes);

/// As a person reads it, in the digits that its type has: "0.1", "-3", "nan", "true", "1+2i". `parts`: parts_of of
/// them.
std::string element_text(std::string_view dtype, const long double* parts);

}  // namespace holdfast::store
