// Large tensors cut into runs of rows, so that what has not changed can be told in parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "store/slices.h"
#include "store/tensor_data.h"

namespace holdfast::store {

struct RowParts {
  std::vector<TensorData> tensors;
  Slices slices;  ///< of those that are parts
};

/// Tensors of more than `bytes_max` bytes as parts of at most that, or of one row where a row is larger. `slices`: of
/// `tensors`, which may be parts already. Errors: BadInput (bytes that do not fit dtype and shape).
Result<RowParts> cut_rows(std::span<const TensorData> tensors, const Slices& slices, std::uint64_t bytes_max);

}  // namespace holdfast::store
