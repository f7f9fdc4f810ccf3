"""Holdfast keeps a distributed training job making progress. Importing this package does not import torch.

    run = holdfast.attach()
    run.track(model=model, optimizer=optimizer)
    for step, batch in run.steps(loader):
        with step:
            ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.joining import attach
    from holdfast.errors import Stopped
    from holdfast.run import Run

__version__ = "0.1.0"
__all__ = ["Run", "Stopped", "__version__", "attach"]


def __getattr__(name: str) -> Any:
    if name == "attach":
        from holdfast.joining import attach

        return attach
    if name == "Run":
        from holdfast.run import Run

        return Run
    if name == "Stopped":
        from holdfast.errors import Stopped

        return Stopped
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
