"""Checkpoints for any training loop: sharded, asynchronous, safe against crashes, loaded into any layout.

    checkpointer = holdfast.Checkpointer("checkpoints")
    step = checkpointer.load(state) or 0
    ...
    checkpointer.save(state, step)

With tiers, memory often and an object store seldom:

    Checkpointer([Tier("/dev/shm/run-7", every=10), Tier("ckpt", every=100), Tier("s3://bucket/run-7", every=1000)])

Format: docs/format-checkpoint.md. No collective of torch.distributed is used: ranks agree through its key-value store.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from holdfast import buffers, checkpoint, state
from holdfast._core import OpenCheckpoint, verify_checkpoint
from holdfast.elements import dtype_name, is_plain, stored_shape, tensor_bytes
from holdfast.ranks import Ranks
from holdfast.slices import describe, slice_name
from holdfast.tiers import PATIENCE_S, Tier, TierWriter


class Checkpointer:
    """One for each rank, made by all ranks in the same order. Not thread-safe."""

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[Tier],
        *,
        keep: int = 2,
        incremental: bool = False,
        run_id: str = "",
        ranks: Ranks | None = None,
    ):
        """`path`: a folder that all ranks see, also s3://bucket/prefix, of whose verified checkpoints `keep` stay; or
        tiers, the fastest first. `incremental`: tensors that have not changed since the last checkpoint are not
        written again. `ranks`: by default those of torch.distributed, where it is initialised. Errors: OSError;
        ValueError for a folder that can't be used."""
        self._ranks = ranks or Ranks.usual()
        tiers = [Tier(path, keep=keep)] if isinstance(path, str | os.PathLike) else list(path)
        if not tiers:
            raise ValueError("there must be at least one tier")
        self._tiers = [
            TierWriter(tier, self._ranks.apart(str(i)), incremental=incremental, run_id=run_id)
            for i, tier in enumerate(tiers)
        ]
        self._epoch = int(self._ranks.told("epoch", self._open_epoch))
        self._loads = 0

    def save(self, value: Any, step: int) -> None:
        """Makes `value`, a nested state with tensors and DTensors, the checkpoint of `step` in each tier whose turn it
        is; blocks while this rank's part is copied, and before for a save of the first tier that is still under way. A
        slower tier that is still writing misses its turn. Plain tensors must be alike on all ranks: each saves a share
        of them. Errors: CheckpointError for an earlier save that failed; TypeError for what can't be stored."""
        due = [tier for i, tier in enumerate(self._tiers) if step % tier.tier.every == 0 and self._has_time(i, step)]
        if not due:
            return
        _raise_first(due)
        with _no_collection():
            flat = state.flatten(value)
            tensors, slices = self._own_part(flat)
            for tier in due:
                tier.save(step, self._epoch, flat.telling(), tensors, slices)

    def _has_time(self, of: int, step: int) -> bool:
        """Rank 0 says, so that all do the same."""
        tier = self._tiers[of]
        if of == 0:
            return True
        if self._ranks.told(f"busy/{of}/{step}", lambda: "busy" if tier.writing() else "") == "":
            return True
        if self._ranks.rank == 0:
            print(f"holdfast: {tier.tier.path} is still being written to; step {step} is left out there", flush=True)
        return False

    def writing(self) -> bool:
        """Whether a save is still under way."""
        return any(tier.writing() for tier in self._tiers)

    def wait(self) -> None:
        """Until all saves are committed. Errors: CheckpointError where one failed."""
        _raise_first(self._tiers)

    def load(self, value: Any) -> int | None:
        """Fills the tensors and DTensors of `value` from the newest checkpoint of all tiers whose every byte verifies,
        each rank reading only its parts, whatever the layout they were saved in; other values in its dicts and lists
        are replaced. Its step, or None where there is none. Errors: ValueError for a tensor that the checkpoint lacks
        or holds in another dtype or shape; after it, tensors may hold anything."""
        self.wait()
        self._loads += 1
        found = self._newest()
        if found is None:
            return None
        of, directory = found
        opened = OpenCheckpoint(directory)
        fill(opened, value)
        for i, tier in enumerate(self._tiers):
            tier.loaded(opened if i == of else None)
        return opened.step

    def _open_epoch(self) -> str:
        """One for all tiers, above all that ever wrote to any."""
        epoch = 1 + max(tier.folder.highest_epoch() for tier in self._tiers)
        for tier in self._tiers:
            epoch = tier.folder.open_epoch(epoch)
        return str(epoch)

    def _newest(self) -> tuple[int, str] | None:
        """Tier and directory of the newest that verifies. Each rank reads its share of the files."""
        candidates = json.loads(self._ranks.told(f"load/{self._loads}", self._list))
        for number, (of, name, directory, why) in enumerate(candidates):
            if not why:
                key = f"load/{self._loads}/{number}"
                words = self._ranks.gathered(key, self._verify_share(directory), PATIENCE_S)
                why = self._ranks.told(f"{key}/verdict", partial(_first_said, words), PATIENCE_S)
            if not why:
                return of, directory
            if self._ranks.rank == 0:
                print(f"holdfast: checkpoint {name} passed over: {why}", flush=True)
        return None

    def _list(self) -> str:
        """All that are there, newest first; of equal ones that of the fastest tier."""
        found = []
        for of, tier in enumerate(self._tiers):
            for epoch, step, why in tier.folder.all():
                directory = tier.folder.path_of(step, epoch)
                found.append(((-epoch, -step, of), (of, directory.rsplit("/", 1)[-1], directory, why)))
        return json.dumps([entry for _, entry in sorted(found)])

    def _verify_share(self, directory: str) -> str:
        """What is wrong with it; "" where nothing is."""
        try:
            verify_checkpoint(directory, self._ranks.rank, self._ranks.size)
        except Exception as error:
            return str(error) or type(error).__name__
        return ""

    def _own_part(self, flat: state.Flat) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        whole = {name: t.numel() * t.element_size() for name, t in flat.tensors.items() if name not in flat.slices}
        mine = {name: flat.tensors[name] for name in checkpoint.share(whole, self._ranks.rank, self._ranks.size)}
        slices = {}
        for name, place in flat.slices.items():
            tensor = flat.tensors[name]
            if place.replica or not tensor.numel():
                continue
            part = slice_name(name, place.begin)
            mine[part] = tensor
            slices[part] = describe(name, place.shape, place.begin)
        return mine, slices


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python counts the objects that a save makes, and would look for garbage among all of a job's in the middle."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _first_said(words: list[str]) -> str:
    return next(filter(None, words), "")


def _raise_first(tiers: Sequence[TierWriter]) -> None:
    failures = [failure for tier in tiers if (failure := tier.wait()) is not None]
    if failures:
        raise failures[0]


def fill(opened: OpenCheckpoint, value: Any) -> tuple[int, int]:
    """As `Checkpointer.load`, from an open checkpoint. Bytes read, and those of them that were checked."""
    flat = state.flatten(value)
    held = opened.tensors()
    boxes: list[tuple[str, list[int], list[int], Any]] = []
    later: list[Callable[[], None]] = []
    for name, tensor in flat.tensors.items():
        place = flat.slices.get(name)
        whole = list(place.shape) if place else list(tensor.shape)
        _check(name, held, tensor, whole)
        memory, finish = _memory_of(tensor)
        if finish:
            later.append(finish)
        begin = list(place.begin) if place else [0] * tensor.dim()
        if tensor.numel():
            boxes.append((name, begin, stored_shape(tensor), buffers.view(memory)))
    tally = opened.read(boxes)
    for finish in later:
        finish()
    saved = state.unflatten(state.Flat(opened.structure, _Anything()))
    _put_values(value, saved)
    return tally


class _Anything(dict[str, Any]):
    """Stands for tensors that are in place already."""

    def __missing__(self, name: str) -> None:
        return None


def _check(name: str, held: dict[str, tuple[str, list[int]]], tensor: torch.Tensor, whole: list[int]) -> None:
    if name not in held:
        raise ValueError(f"tensor {name}: the checkpoint holds no such tensor")
    dtype, shape = held[name]
    wanted = stored_shape(torch.empty(whole, dtype=tensor.dtype, device="meta"))
    if dtype != dtype_name(tensor.dtype) or shape != wanted:
        raise ValueError(
            f"tensor {name}: the checkpoint holds {dtype} of shape {shape}, "
            f"the state {dtype_name(tensor.dtype)} of shape {wanted}"
        )


def _memory_of(tensor: torch.Tensor) -> tuple[torch.Tensor, Callable[[], None] | None]:
    """Flat bytes on the CPU to read into, and what brings them into the tensor where they are not its own memory."""
    if is_plain(tensor):
        return tensor_bytes(tensor), None
    aside = torch.empty(tensor.shape, dtype=tensor.dtype)

    def finish() -> None:
        with torch.no_grad():
            tensor.copy_(aside)

    return tensor_bytes(aside), finish


def _put_values(live: Any, saved: Any) -> None:
    """Replaces what is no tensor in dicts and lists that both have."""
    if isinstance(live, dict) and isinstance(saved, dict):
        pairs = [(key, live[key], saved[key]) for key in live if key in saved]
    elif isinstance(live, list) and isinstance(saved, list) and len(live) == len(saved):
        pairs = list(zip(range(len(live)), live, saved, strict=True))
    else:
        return
    for key, now, then in pairs:
        if isinstance(now, torch.Tensor):
            continue
        if isinstance(now, dict | list):
            _put_values(now, then)
        elif not _holds_tensors(now):
            live[key] = then


def _holds_tensors(value: Any) -> bool:
    return bool(state.flatten(value).tensors)
