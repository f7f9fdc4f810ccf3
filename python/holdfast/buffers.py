"""A tensor's bytes as a Python buffer, without numpy and without a copy."""

from __future__ import annotations

import ctypes
from typing import Any

import torch


def view(data: torch.Tensor) -> Any:
    """A writable buffer over `data`, a flat CPU tensor of bytes, which it keeps alive."""
    buffer: Any = (ctypes.c_ubyte * data.numel()).from_address(data.data_ptr())
    buffer.owner = data
    return buffer
