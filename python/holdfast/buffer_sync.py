"""Buffers (batch norm statistics) alike on all ranks at every boundary.

DistributedDataParallel sends rank 0's buffers to the others when the next forward pass begins; until then they live on
rank 0 alone, and would die with it. Holdfast sends them before the optimizer instead: as many collectives, same values.
"""

from __future__ import annotations

import torch
from torch._C._distributed_c10d import _broadcast_coalesced
from torch.distributed import distributed_c10d as c10d
from torch.nn.parallel import DistributedDataParallel

_BUCKET_BYTES = 250 << 20

BufferPlace = tuple[torch.nn.Module, str]


def buffer_places(modules: list[torch.nn.Module], persistent: bool) -> list[BufferPlace]:
    """Where the buffers of `modules` are (the tensor there may be replaced); `persistent`: those in state_dict only."""
    places: list[BufferPlace] = []
    seen: set[int] = set()
    for module in modules:
        for part in module.modules():
            if id(part) not in seen:
                seen.add(id(part))
                skipped = part._non_persistent_buffers_set if persistent else set()
                places += [(part, name) for name, b in part._buffers.items() if b is not None and name not in skipped]
    return places


class BufferSync:
    def __init__(self) -> None:
        self._places: list[BufferPlace] = []
        self.needed = False
        self._counted = 0
        self._done = False

    def take_over(self, models: list[DistributedDataParallel]) -> None:
        synced = [model for model in models if model.broadcast_buffers]
        for model in synced:
            model.broadcast_buffers = False
        self._places = buffer_places([model.module for model in synced], persistent=False)
        self.needed = bool(self._places)

    def begin(self) -> None:
        """A step begins: the buffers are alike."""
        self._done = False

    def run(self) -> None:
        """A collective of all ranks: the first time in a step, and whenever something has changed since."""
        if self._done and self._count() == self._counted:
            return
        with torch.no_grad():
            _broadcast_coalesced(c10d._get_default_group(), self._buffers(), _BUCKET_BYTES, 0)
        self._counted = self._count()
        self._done = True

    def _buffers(self) -> list[torch.Tensor]:
        return [b for b in (part._buffers[name] for part, name in self._places) if b is not None]

    def _count(self) -> int:
        """Counts changes (of batch norm, those of its counter: the statistics' own don't show)."""
        return sum(buffer._version for buffer in self._buffers())
