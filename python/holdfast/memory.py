"""Memory of tensors that are gone, kept for the next load, which without it takes several times as long."""

from __future__ import annotations

import os

from holdfast import _core

VARIABLE = "HOLDFAST_KEEP_MEMORY_BYTES"


def keep_memory(bytes_max: int) -> None:
    """Keeps at most so many bytes of what loads had and is free again; what is over goes back to the system at once. A
    quarter of the machine's memory where neither this nor the environment's HOLDFAST_KEEP_MEMORY_BYTES says else.
    Memory that is kept counts as used, but the system takes it back when it gets short."""
    if bytes_max < 0:
        raise ValueError(f"{bytes_max} bytes can't be kept")
    _core.keep_memory(bytes_max)


def kept_memory() -> int:
    """Bytes that are kept now."""
    return _core.kept_memory()


def follow_environment() -> None:
    """Errors: ValueError where the environment holds no number."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    if not text.isdecimal():
        raise ValueError(f"{VARIABLE} is a number of bytes, not {text!r}")
    keep_memory(int(text))
