// The tensors that Python hands over: tuples of name, dtype, shape and a buffer.
#pragma once

#include <pybind11/pybind11.h>

#include <span>
#include <vector>

#include "store/tensor_data.h"

namespace holdfast::python {

/// Keeps the buffers alive as long as it lives; to be destroyed with the GIL. Throws where an item is something else.
class TensorList {
 public:
  explicit TensorList(const pybind11::list& items);
  std::span<const store::TensorData> all() const { return tensors_; }

 private:
  std::vector<pybind11::buffer_info> held_;
  std::vector<store::TensorData> tensors_;
};

}  // namespace holdfast::python
