// Element types by the names torch gives them, and what they are called here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast::store {

struct TorchDtype {
  std::string_view torch;    ///< "float32", an attribute of the module torch
  std::string_view storage;  ///< "FloatStorage", an attribute of it too; empty where torch has no such class
  std::string_view name;     ///< as safetensors spells it; "C128" and "C32", which safetensors lacks
  std::uint32_t bytes = 0;   ///< of what torch counts as one element
  std::uint32_t packed = 1;  ///< elements, as safetensors counts them, in one of torch's
};

std::span<const TorchDtype> torch_dtypes();
/// None for a name that is not in the list.
const TorchDtype* torch_dtype(std::string_view torch);
const TorchDtype* torch_dtype_of_storage(std::string_view storage);
/// By our own name.
const TorchDtype* torch_dtype_named(std::string_view name);

}  // namespace holdfast::store
