"""Memory that a checkpoint is copied into, kept from save to save: fresh memory costs several times the copy."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from holdfast import buffers
from holdfast._core import Block
from holdfast.elements import dtype_name, stored_shape
from holdfast.member import SavedTensor

ALIGNMENT = 64


class Staging:
    """Pinned where there is a GPU (not run on a GPU), so that its copies run beside each other."""

    def __init__(self) -> None:
        self._arena = torch.empty(0, dtype=torch.uint8)

    def copy(self, tensors: Mapping[str, torch.Tensor]) -> list[SavedTensor]:
        """The tensors as the core takes them; their bytes are copies, valid until the next call."""
        places, total = {}, 0
        for name, tensor in tensors.items():
            places[name] = total
            total += -(-tensor.numel() * tensor.element_size() // ALIGNMENT) * ALIGNMENT
        if total > self._arena.numel():
            self._arena = torch.empty(0, dtype=torch.uint8)  # the old one goes before the new one comes
            self._arena = _memory(total)
        staged: list[SavedTensor] = []
        for name, tensor in tensors.items():
            size = tensor.numel() * tensor.element_size()
            data = self._arena[places[name] : places[name] + size]
            if size:
                plain = tensor.detach()
                data.view(plain.dtype).reshape(plain.shape).copy_(plain, non_blocking=True)
            staged.append((name, dtype_name(tensor.dtype), stored_shape(tensor), buffers.view(data)))
        if any(tensor.is_cuda for tensor in tensors.values()):
            torch.cuda.synchronize()
        return staged


def _memory(size: int) -> torch.Tensor:
    if torch.cuda.is_available():
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)
    return torch.frombuffer(Block(size), dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
