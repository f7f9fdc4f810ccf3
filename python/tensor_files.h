// Tensor files for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace holdfast::python {

/// Binds what reads and writes tensor files (python/holdfast/_core.pyi).
void bind_tensor_files(pybind11::module_& module);

}  // namespace holdfast::python
