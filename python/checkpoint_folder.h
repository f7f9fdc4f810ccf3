// Directories of checkpoints for Python: what is there, what becomes the newest, what goes.
#pragma once

#include <pybind11/pybind11.h>

namespace holdfast::python {

/// Binds CheckpointFolder and verify_checkpoint (python/holdfast/_core.pyi).
void bind_checkpoint_folder(pybind11::module_& module);

}  // namespace holdfast::python
