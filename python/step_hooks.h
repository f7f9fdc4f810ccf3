// The hooks that run inside every step, on tracked optimizers and the parameter whose gradient comes last.
#pragma once

#include <pybind11/pybind11.h>

namespace holdfast::python {

/// Binds StepHooks (python/holdfast/_core.pyi).
void bind_step_hooks(pybind11::module_& module);

}  // namespace holdfast::python
