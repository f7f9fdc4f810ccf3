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
    from holdfast.checkpointer import Checkpointer
    from holdfast.errors import CheckpointError, Stopped
    from holdfast.keys import Key
    from holdfast.memory import keep_memory, kept_memory
    from holdfast.run import Run
    from holdfast.sharded import weights
    from holdfast.streaming import stream
    from holdfast.tensors import load, save, verify
    from holdfast.tiers import Tier

__version__ = "0.1.0"
__all__ = [
    "CheckpointError",
    "Checkpointer",
    "Key",
    "Run",
    "Stopped",
    "Tier",
    "__version__",
    "attach",
    "keep_memory",
    "kept_memory",
    "load",
    "save",
    "stream",
    "verify",
    "weights",
]

_HOMES = {
    "attach": "joining",
    "Key": "keys",
    "Run": "run",
    "Stopped": "errors",
    "CheckpointError": "errors",
    "Checkpointer": "checkpointer",
    "keep_memory": "memory",
    "kept_memory": "memory",
    "load": "tensors",
    "save": "tensors",
    "stream": "streaming",
    "Tier": "tiers",
    "verify": "tensors",
    "weights": "sharded",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(importlib.import_module(f"holdfast.{_HOMES[name]}"), name)
