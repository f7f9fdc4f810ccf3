#include "store/torch_dtype.h"

#include <algorithm>
#include <array>

namespace holdfast::store {
namespace {

constexpr std::array kDtypes = std::to_array<TorchDtype>({
    {"float64", "DoubleStorage", "F64", 8},
    {"float32", "FloatStorage", "F32", 4},
    {"float16", "HalfStorage", "F16", 2},
    {"bfloat16", "BFloat16Storage", "BF16", 2},
    {"int64", "LongStorage", "I64", 8},
    {"int32", "IntStorage", "I32", 4},
    {"int16", "ShortStorage", "I16", 2},
    {"int8", "CharStorage", "I8", 1},
    {"uint8", "ByteStorage", "U8", 1},
    {"bool", "BoolStorage", "BOOL", 1},
    {"complex64", "ComplexFloatStorage", "C64", 8},
    {"complex128", "ComplexDoubleStorage", "C128", 16},
    {"complex32", "", "C32", 4},
    {"uint64", "", "U64", 8},
    {"uint32", "", "U32", 4},
    {"uint16", "", "U16", 2},
    {"float8_e4m3fn", "", "F8_E4M3", 1},
    {"float8_e5m2", "", "F8_E5M2", 1},
    {"float8_e4m3fnuz", "", "F8_E4M3FNUZ", 1},
    {"float8_e5m2fnuz", "", "F8_E5M2FNUZ", 1},
    {"float8_e8m0fnu", "", "F8_E8M0", 1},
    {"float4_e2m1fn_x2", "", "F4", 1, 2},
});

const TorchDtype* found(std::string_view TorchDtype::* field, std::string_view value) {
  const auto* at = std::find_if(kDtypes.begin(), kDtypes.end(),
                                [&](const TorchDtype& dtype) { return !value.empty() && dtype.*field == value; });
  return at == kDtypes.end() ? nullptr : at;
}

}  // namespace

std::span<const TorchDtype> torch_dtypes() { return kDtypes; }
const TorchDtype* torch_dtype(std::string_view torch) { return found(&TorchDtype::torch, torch); }
const TorchDtype* torch_dtype_of_storage(std::string_view storage) { return found(&TorchDtype::storage, storage); }
const TorchDtype* torch_dtype_named(std::string_view name) { return found(&TorchDtype::name, name); }

}  // namespace holdfast::store
