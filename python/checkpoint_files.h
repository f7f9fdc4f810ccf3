// Checkpoints for Python: writing a shard, reading any part of one.
#pragma once

#include <pybind11/pybind11.h>

namespace holdfast::python {

/// Binds OpenCheckpoint, IncrementalWriter and write_shard (python/holdfast/_core.pyi).
void bind_checkpoint_files(pybind11::module_& module);

}  // namespace holdfast::python
