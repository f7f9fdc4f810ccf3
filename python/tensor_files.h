// Tensor files for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace holdfast::python {

/// Binds load_tensors, save_tensors, tensor_header, verify_tensors and those of whole models
/// (python/holdfast/_core.pyi).
void bind_tensor_files(pybind11::module_& module);

}  // namespace holdfast::python
