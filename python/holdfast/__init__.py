"""Holdfast keeps a distributed training job making progress. Importing this package does not import torch.

    run = holdfast.attach()
    run.track(model=model, optimizer=optimizer)
    for step, batch in run.steps(loader):
        with step:
            ...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.joining import attach
    from holdfast.errors import Stopped
    from holdfast.run import Run
    from holdfast.memory import keep_memory, kept_memory
    from holdfast.streaming import stream
    from holdfast.tensors import load, save, verify

__version__ = "0.1.0"
__all__ = [
    "Run",
    "Stopped",
    "__version__",
    "attach",
    "keep_memory",
    "kept_memory",
    "load",
    "save",
    "stream",
    "verify",
]

_HOMES = {
    "attach": "joining",
    "Run": "run",
    "Stopped": "errors",
    "keep_memory": "memory",
    "kept_memory": "memory",
    "load": "tensors",
    "save": "tensors",
    "stream": "streaming",
    "verify": "tensors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(importlib.import_module(f"holdfast.{_HOMES[name]}"), name)
