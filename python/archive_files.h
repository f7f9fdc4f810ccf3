// Tensor files of other programs for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace holdfast::python {

/// Binds archive_kind, load_archive and verify_archive (python/holdfast/_core.pyi).
void bind_archive_files(pybind11::module_& module);

}  // namespace holdfast::python
