"""Memory that a checkpoint is copied into, kept from save to save: fresh memory costs several times the copy."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from holdfast import buffers
from holdfast._core import Block, copy_memory, shard_places
from holdfast.elements import dtype_name, is_plain, stored_shape
from holdfast.member import SavedTensor

Kind = tuple[str, str, list[int]]  # name, dtype, shape


class Staging:
    """Pinned where there is a GPU (not run on a GPU), so that its copies run beside each other. The tensors lie in it
    as they will in their file, which is then written straight from it."""

    def __init__(self) -> None:
        self._arena = torch.empty(0, dtype=torch.uint8)
        self._kinds: list[Kind] = []
        self._staged: list[SavedTensor] = []
        self._parts: list[torch.Tensor] = []  # of the arena

    def copy(self, tensors: Mapping[str, torch.Tensor]) -> list[SavedTensor]:
        """The tensors as the core takes them; their bytes are copies, valid until the next call. Takes as many threads
        as torch does."""
        kinds = [(name, dtype_name(tensor.dtype), stored_shape(tensor)) for name, tensor in tensors.items()]
        if kinds != self._kinds:
            self._lay_out(kinds)
        plain: list[tuple[int, int, int]] = []
        for tensor, part in zip(tensors.values(), self._parts, strict=True):
            if is_plain(tensor):
                plain.append((part.data_ptr(), tensor.data_ptr(), tensor.nbytes))
            elif tensor.numel():
                part.view(tensor.dtype).reshape(tensor.shape).copy_(tensor.detach(), non_blocking=True)
        copy_memory(plain, torch.get_num_threads())
        if any(tensor.is_cuda for tensor in tensors.values()):
            torch.cuda.synchronize()
        return self._staged

    def _lay_out(self, kinds: list[Kind]) -> None:
        places = shard_places(kinds)
        total = max((end for _, end in places), default=0)
        if total > self._arena.numel():
            self._parts, self._staged = [], []
            self._arena = torch.empty(0, dtype=torch.uint8)  # the old one goes before the new one comes
            self._arena = _memory(total)
        self._parts = [self._arena[begin:end] for begin, end in places]
        self._staged = [(*kind, buffers.view(part)) for kind, part in zip(kinds, self._parts, strict=True)]
        self._kinds = kinds


def _memory(size: int) -> torch.Tensor:
    if torch.cuda.is_available():
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)
    return torch.frombuffer(Block(size), dtype=torch.uint8)
