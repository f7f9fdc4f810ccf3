"""Checkpoints for any training loop: sharded, asynchronous, safe against crashes, loaded into any layout.

    checkpointer = holdfast.Checkpointer("checkpoints")
    step = checkpointer.load(state) or 0
    ...
    checkpointer.save(state, step)

Format: docs/format-checkpoint.md. No collective of torch.distributed is used: ranks agree through its key-value store.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

import torch

from holdfast import buffers, checkpoint, state
from holdfast._core import CheckpointFolder, OpenCheckpoint, write_shard
from holdfast.elements import dtype_name, is_plain, stored_shape, tensor_bytes
from holdfast.errors import CheckpointError
from holdfast.ranks import Ranks
from holdfast.slices import SLICES, describe, slice_name
from holdfast.staging import Staging

PATIENCE_S = 600.0  # for the other ranks' shards


class Checkpointer:
    """One for each rank, made by all ranks in the same order. Not thread-safe."""

    def __init__(self, path: str | os.PathLike[str], *, keep: int = 2, run_id: str = "", ranks: Ranks | None = None):
        """`path`: a folder that all ranks see. `keep`: verified checkpoints that stay. `ranks`: by default those of
        torch.distributed, where it is initialised. Errors: OSError; ValueError for a folder that can't be used."""
        self._path = os.path.abspath(path)
        self._run_id = run_id
        self._ranks = ranks or Ranks.usual()
        self._folder = CheckpointFolder(self._path, keep)
        self._staging = Staging()
        self._writing: threading.Thread | None = None
        self._failure: CheckpointError | None = None
        self._epoch = int(self._ranks.told("epoch", lambda: str(self._folder.open_epoch())))
        self._loads = 0

    def save(self, value: Any, step: int) -> None:
        """Makes `value`, a nested state with tensors and DTensors, the checkpoint of `step`; blocks while this rank's
        part is copied, and before for a save that is still under way. Plain tensors must be alike on all ranks: each
        saves its share of them. Errors: CheckpointError for an earlier save that failed; TypeError for what can't be
        stored."""
        self.wait()
        flat = state.flatten(value)
        tensors, slices = self._own_part(flat)
        metadata = {SLICES: json.dumps(slices, separators=(",", ":"))} if slices else {}
        staged = self._staging.copy(tensors)
        structure = flat.structure if self._ranks.rank == 0 else ""
        self._writing = threading.Thread(
            target=self._write, args=(step, structure, staged, metadata), name="holdfast checkpoint"
        )
        self._writing.start()

    def writing(self) -> bool:
        """Whether a save is still under way."""
        return self._writing is not None and self._writing.is_alive()

    def wait(self) -> None:
        """Until the last save is committed. Errors: CheckpointError where it failed."""
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def load(self, value: Any) -> int | None:
        """Fills the tensors and DTensors of `value` from the newest checkpoint whose every byte verifies, each rank
        reading only its parts, whatever the layout they were saved in; other values in its dicts and lists are
        replaced. Its step, or None where there is none. Errors: ValueError for a tensor that the checkpoint lacks or
        holds in another dtype or shape; after it, tensors may hold anything."""
        self.wait()
        self._loads += 1
        found = json.loads(self._ranks.told(f"load/{self._loads}", self._find))
        for name, why in found["passed_over"] if self._ranks.rank == 0 else []:
            print(f"holdfast: checkpoint {name} passed over: {why}", flush=True)
        if found["directory"] is None:
            return None
        opened = OpenCheckpoint(found["directory"])
        fill(opened, value)
        return opened.step

    def _find(self) -> str:
        newest, passed_over = self._folder.newest()
        return json.dumps({"directory": newest[1] if newest else None, "passed_over": passed_over})

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

    def _write(self, step: int, structure: str, staged: list[Any], metadata: dict[str, str]) -> None:
        directory = self._folder.path_of(step, self._epoch)
        try:
            record = write_shard(directory, self._ranks.rank, self._ranks.size, staged, metadata)
            outcome = json.dumps({"record": record})
        except Exception as error:
            outcome = json.dumps({"error": f"rank {self._ranks.rank}: {error}"})
        try:
            answers = self._ranks.gathered(f"save/{step}", outcome, PATIENCE_S)
            verdict = self._ranks.told(f"commit/{step}", lambda: self._commit(step, structure, answers), PATIENCE_S)
        except Exception as error:
            verdict = str(error) or type(error).__name__
        if verdict:
            self._failure = CheckpointError(f"step {step}: {verdict}")

    def _commit(self, step: int, structure: str, answers: list[str]) -> str:
        """Why it failed; "" where it did not."""
        parsed = [json.loads(answer) for answer in answers]
        errors = [answer["error"] for answer in parsed if "error" in answer]
        try:
            if errors:
                self._folder.discard(step, self._epoch)
                return "; ".join(errors)
            shards = [tuple(answer["record"]) for answer in parsed]
            self._folder.commit(self._run_id, step, self._epoch, self._ranks.size, structure, shards)
        except Exception as error:
            return "; ".join([*errors, str(error)])
        return ""


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
