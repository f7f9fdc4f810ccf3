"""How each system saves, in a process of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist

LIMIT = "limit: memcpy_"  # and then by how many threads


class Saver(Protocol):
    """Of one rank. `save` returns when the state may change again, `wait` when the checkpoint is whole."""

    def save(self, state: Any, step: int) -> None: ...
    def writing(self) -> bool: ...
    def wait(self) -> None: ...


class HoldfastSaver:
    def __init__(self, folder: Path) -> None:
        import holdfast

        self._checkpointer = holdfast.Checkpointer(folder / "holdfast", keep=1000)
        self.save = self._checkpointer.save
        self.writing = self._checkpointer.writing
        self.wait = self._checkpointer.wait


class DcpSaver:
    """Plans through a group of its own: on the training loop's its collectives would meet those of the loop."""

    def __init__(self, folder: Path, reused: bool) -> None:
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        self._folder = folder
        self._group = dist.new_group(backend="gloo")
        # async_save's own choice where no stager is given, but kept from save to save with its memory
        self._stager = DefaultStager(StagingOptions(False, False, False, False)) if reused else None
        self._future: Future[Any] | None = None

    def save(self, state: Any, step: int) -> None:
        import torch.distributed.checkpoint as dcp

        path = self._folder / f"dcp-{step}"
        self._future = dcp.async_save(state, checkpoint_id=path, process_group=self._group, async_stager=self._stager)

    def writing(self) -> bool:
        return self._future is not None and not self._future.done()

    def wait(self) -> None:
        if self._future is not None:
            self._future.result()


class Memcpy:
    """One copy of as many bytes between memory that is there, by the C library."""

    def __init__(self, size: int, threads: int) -> None:
        from holdfast._core import Block

        self._source = torch.ones(size, dtype=torch.uint8)
        self._target = torch.frombuffer(Block(size), dtype=torch.uint8).fill_(0)
        step = -(-size // threads)
        self._parts = [(begin, min(step, size - begin)) for begin in range(0, size, step)]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def save(self, state: Any, step: int) -> None:
        if self._pool is None:
            self._copy(self._parts[0])
        else:
            list(self._pool.map(self._copy, self._parts))

    def writing(self) -> bool:
        return False

    def wait(self) -> None:
        pass

    def _copy(self, part: tuple[int, int]) -> None:
        begin, size = part
        ctypes.memmove(self._target.data_ptr() + begin, self._source.data_ptr() + begin, size)


SAVERS: dict[str, Callable[[Path], Saver]] = {
    "holdfast": HoldfastSaver,
    "dcp_async": lambda folder: DcpSaver(folder, reused=False),
    "dcp_async_reused": lambda folder: DcpSaver(folder, reused=True),
}


def make(system: str, folder: Path, size: int) -> Saver:
    if system.startswith(LIMIT):
        return Memcpy(size, int(system.removeprefix(LIMIT)))
    return SAVERS[system](folder)
