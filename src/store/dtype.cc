#include "store/dtype.h"

#include <array>

namespace holdfast::store {
namespace {

struct Dtype {
  std::string_view name;
  std::uint32_t bits;
};

constexpr std::array kDtypes = std::to_array<Dtype>({
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
});

}  // namespace

std::optional<std::uint32_t> dtype_bits(std::string_view dtype) {
  for (const Dtype& known : kDtypes) {
    if (known.name == dtype) return known.bits;
  }
  return std::nullopt;
}

Result<std::uint64_t> tensor_bytes(std::string_view dtype, std::span<const std::uint64_t> shape) {
  const std::optional<std::uint32_t> bits = dtype_bits(dtype);
  if (!bits) return Error(Code::BadInput, "unknown dtype " + std::string(dtype));
  std::uint64_t total = *bits;
  for (const std::uint64_t dimension : shape) {
    if (__builtin_mul_overflow(total, dimension, &total)) {
      return Error(Code::BadInput, "shape " + shape_text(shape) + " is larger than 64 bits can count");
    }
  }
  if (total % 8 != 0) {
    return Error(Code::BadInput, std::string(dtype) + " of shape " + shape_text(shape) + " fills no whole byte");
  }
  return total / 8;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

}  // namespace holdfast::store
