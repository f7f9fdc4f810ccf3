"""Storage for torch.distributed.checkpoint: existing code changes one line.

    dcp.save(state, storage_writer=holdfast.dcp.Writer("checkpoint"))
    dcp.load(state, storage_reader=holdfast.dcp.Reader("checkpoint"))

A folder holds one checkpoint: tensor files and a manifest, every byte under a checksum, nothing pickled
(docs/format-checkpoint.md). It counts once its manifest is there, which is written last.
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from holdfast import buffers, state
from holdfast._core import OpenCheckpoint, write_manifest, write_shard
from holdfast.elements import dtype_name, dtype_of, stored_shape, tensor_bytes, torch_shape
from holdfast.slices import SLICES, describe, slice_name

if TYPE_CHECKING:
    from holdfast._core import ShardRecord

Path = str | os.PathLike[str]
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class _Wrote:
    """What a rank tells the coordinator: its shard, with the first of its items, and the values it was given."""

    record: ShardRecord | None = None
    value: str | None = None  # JSON


class _Storage:
    def __init__(self, path: Path) -> None:
        self._path = os.path.abspath(path)

    def reset(self, checkpoint_id: Path | None = None) -> None:
        if checkpoint_id:
            self._path = os.path.abspath(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Path) -> bool:
        return "://" not in str(checkpoint_id)


class Writer(_Storage, StorageWriter):
    """`path`: a folder that all ranks see, without a checkpoint in it. Values that are no tensors must be plain (as
    for `holdfast.Checkpointer`). Errors: ValueError, TypeError, OSError."""

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if is_coordinator and os.path.exists(os.path.join(self._path, MANIFEST)):
            raise ValueError(f"{self._path}: a checkpoint is here already; choose another folder")

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        os.makedirs(self._path, exist_ok=True)
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [replace(plan, storage_data=(rank, len(plans))) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        writer, writers = plan.storage_data
        stored, slices, alive, results = [], {}, [], []
        for item in plan.items:
            if item.type == WriteItemType.BYTE_IO:
                results.append(WriteResult(item.index, 0, _Wrote(value=_plain_value(planner, item))))
                continue
            tensor = planner.resolve_data(item)
            assert isinstance(tensor, torch.Tensor)
            name, about = _place(item, tensor)
            if about:
                slices[name] = about
            data = tensor_bytes(tensor)
            alive.append(data)
            stored.append((name, dtype_name(tensor.dtype), stored_shape(tensor), buffers.view(data)))
            results.append(WriteResult(item.index, data.numel(), None))
        metadata = {SLICES: json.dumps(slices, separators=(",", ":"))} if slices else {}
        record = write_shard(self._path, writer, writers, stored, metadata)
        results.append(WriteResult(MetadataIndex(""), 0, _Wrote(record=record)))
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        records, values = [], {}
        for result in (result for each in results for result in each):
            told = result.storage_data
            if isinstance(told, _Wrote) and told.record is not None:
                records.append(told.record)
            elif isinstance(told, _Wrote) and told.value is not None:
                values[result.index.fqn] = json.loads(told.value)
        paths = {name: list(path) for name, path in (metadata.planner_data or {}).items()}
        structure = json.dumps({"paths": paths, "values": values}, separators=(",", ":"))
        write_manifest(self._path, len(records), structure, sorted(records, key=_writer_of))

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self._path)


class Reader(_Storage, StorageReader):
    """`path`: a folder that `Writer` wrote, or a checkpoint of `holdfast.Checkpointer`. Reads of each tensor only what
    is asked for. Errors: ValueError for a damaged or missing checkpoint, FileNotFoundError."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._opened: OpenCheckpoint | None = None

    def reset(self, checkpoint_id: Path | None = None) -> None:
        super().reset(checkpoint_id)
        self._opened = None

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        entries: dict[str, Any] = {}
        for name, (dtype, shape) in self._checkpoint().tensors().items():
            size = torch.Size(torch_shape(dtype, shape))
            chunk = ChunkStorageMetadata(torch.Size([0] * len(size)), size)
            entries[name] = TensorStorageMetadata(TensorProperties(dtype=dtype_of(dtype)), size, [chunk])
        structure = self._structure()
        for name in structure.get("values", {}):
            entries[name] = BytesStorageMetadata()
        paths = {name: tuple(path) for name, path in structure.get("paths", {}).items()}
        meta = Metadata(state_dict_metadata=entries, planner_data=paths, storage_data={})
        meta.storage_meta = StorageMeta(checkpoint_id=self._path, load_id=self._path)
        return meta

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        values = self._structure().get("values", {})
        boxes, commits = [], []
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, _saved(values[item.storage_index.fqn]))
                continue
            target = planner.resolve_tensor(item).detach()
            own = target.device.type == "cpu" and target.is_contiguous()
            memory = target if own else torch.empty(target.shape, dtype=target.dtype)
            if target.numel():
                begin = _packed(target, list(item.storage_offsets))
                boxes.append((item.storage_index.fqn, begin, stored_shape(memory), buffers.view(tensor_bytes(memory))))
            commits.append((item, target, memory))
        self._checkpoint().read(boxes)
        for item, target, memory in commits:
            if memory is not target:
                target.copy_(memory)
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _checkpoint(self) -> OpenCheckpoint:
        if self._opened is None:
            self._opened = OpenCheckpoint(self._path)
        return self._opened

    def _structure(self) -> dict[str, Any]:
        structure = json.loads(self._checkpoint().structure)
        # Of a Checkpointer it is a nested state, whose values have no names here.
        return structure if isinstance(structure, dict) and set(structure) == {"paths", "values"} else {}


def _place(item: WriteItem, tensor: torch.Tensor) -> tuple[str, dict[str, Any] | None]:
    """The name that a part has in its file, and where it lies in the whole; None where it is the whole."""
    assert item.tensor_data is not None
    chunk, whole = item.tensor_data.chunk, item.tensor_data.size
    if tuple(chunk.sizes) == tuple(whole):
        return item.index.fqn, None
    begin = _packed(tensor, list(chunk.offsets))
    shape = stored_shape(torch.empty(whole, dtype=tensor.dtype, device="meta"))
    return slice_name(item.index.fqn, begin), describe(item.index.fqn, shape, begin)


def _packed(tensor: torch.Tensor, begin: list[int]) -> list[int]:
    """The first element as files count: torch counts packed elements in pairs."""
    if begin and dtype_name(tensor.dtype) == "F4":
        begin[-1] *= 2
    return begin


def _plain_value(planner: SavePlanner, item: WriteItem) -> str:
    value = planner.lookup_object(item.index)  # type: ignore[attr-defined]
    flat = state.flatten(value, item.index.fqn)
    if flat.tensors:
        raise TypeError(f"{item.index.fqn}: a value with tensors in it can't be stored as one; flatten the state")
    return flat.structure


def _saved(node: Any) -> io.BytesIO:
    """As planners expect it: torch.save's bytes, made here, of a plain value."""
    memory = io.BytesIO()
    torch.save(state.unflatten(state.Flat(json.dumps(node))), memory)
    memory.seek(0)
    return memory


def _writer_of(record: ShardRecord) -> int:
    return int(record[0].split("-")[1])
