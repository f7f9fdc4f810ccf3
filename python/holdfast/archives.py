"""Tensor files of other programs: PyTorch's, CoreWeave's tensorizer's, and folders of torch.distributed.checkpoint.

What is read, how names map and what is refused: docs/convert.md. No code in such a file is ever run.
"""

from __future__ import annotations

import torch

from holdfast._core import archive_kind, load_archive, verify_archive
from holdfast.elements import tensor_of

SAFETENSORS = "safetensors"


def kind(path: str) -> str:
    """"safetensors", "torch", "tensorizer" or "dcp". Errors: ValueError for a kind that is not read, OSError."""
    return archive_kind(path)


def load(path: str, names: list[str] | None, key: str | bytes | None) -> dict[str, torch.Tensor]:
    """As `holdfast.load` with mode "copy". `key`: what a tensorizer file was encrypted with."""
    places, tied, block = load_archive(path, names, secret(key))
    data = torch.frombuffer(block, dtype=torch.uint8) if places and places[-1][4] else torch.empty(0, dtype=torch.uint8)
    found = {}
    for name, dtype, shape, first, last in places:
        try:
            found[name] = tensor_of(data[first:last], dtype, shape)
        except ValueError as error:
            raise ValueError(f"{path}: tensor {name}: {error}") from None
    found |= {second: found[name].view_as(found[name]) for second, name in tied.items()}
    return found if names is None else {name: found[name] for name in names}


def verify(path: str, key: str | bytes | None) -> bool:
    """As `holdfast.verify`."""
    return verify_archive(path, secret(key))


def secret(key: str | bytes | None) -> bytes | None:
    return key.encode() if isinstance(key, str) else key
