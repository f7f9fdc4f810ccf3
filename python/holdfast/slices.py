"""Tensors that are parts of larger ones, as a file's metadata tells (docs/format-tensors.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SLICES = "holdfast.slices"


def slice_name(of: str, begin: Sequence[int]) -> str:
    return f"{of}[{','.join(map(str, begin))}]"


def describe(of: str, shape: Sequence[int], begin: Sequence[int]) -> dict[str, Any]:
    return {"of": of, "shape": list(shape), "begin": list(begin)}
