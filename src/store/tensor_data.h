// Tensors to be written: what they are called and where their bytes lie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "store/safetensors.h"

namespace holdfast::store {

struct TensorData {
  std::string name;
  std::string dtype;  ///< as safetensors spells it: "F32", "BF16", ...
  std::vector<std::uint64_t> shape;
  BytesView bytes;  ///< row-major, little-endian; stays the caller's
};

/// Where each goes; see lay_out_tensors.
Result<SafetensorsHeader> lay_out(std::span<const TensorData> tensors, std::map<std::string, std::string> metadata);

/// The tensors in the order of `header`, which was laid out for them. Errors: BadInput (not as many bytes as its dtype
/// and shape need).
Result<std::vector<const TensorData*>> in_order(const SafetensorsHeader& header, std::span<const TensorData> tensors);

}  // namespace holdfast::store
