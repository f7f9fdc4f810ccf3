"""Parts of a tensor file: slices of its tensors, and tensors into memory that is there already (holdfast.load)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

import torch

from holdfast import _core, buffers, tensors
from holdfast.elements import TensorPlace, dtype_name, is_plain, storable, stored_shape, tensor_bytes
from holdfast.progress import Progress, shown
from holdfast.streaming import stream

Slices = slice | tuple[slice, ...]
Ranges = list[tuple[int, int]]

_PACKED = "F4"  # two elements a byte; torch counts pairs


def load_slices(
    path: str,
    names: list[str],
    slices: Mapping[str, Slices],
    mode: str,
    key: bytes | None,
    checksums: bool,
    progress: Progress,
) -> dict[str, torch.Tensor]:
    wanted: dict[str, tuple[slice, ...]] = {name: () for name in names}
    wanted |= {name: each if isinstance(each, tuple) else (each,) for name, each in slices.items()}
    metadata, places, _, _ = _core.tensor_header(path, key)
    aliases = tensors.aliases_of(path, metadata)
    stored = {place[0]: place for place in places}
    for name in wanted:
        if aliases.get(name, name) not in stored:
            raise ValueError(f"holds no tensor {name}")
    asked = {name: ranges(stored[aliases.get(name, name)], part) for name, part in wanted.items()}
    if mode == "map":
        whole = tensors.load(path, "map", list(wanted), key=key)
        return {name: whole[name][wanted[name]] for name in wanted}
    loaded: dict[str, torch.Tensor] = {}
    while left := [name for name in asked if name not in loaded]:
        # A tensor that is asked for by two of its names comes in two rounds.
        now = {aliases.get(name, name): name for name in reversed(left)}
        total = sum(_bytes(stored[each], asked[name]) for each, name in now.items())
        with shown(progress, total, f"load {os.path.basename(path)}") as counter:
            parts = [(each, asked[name]) for each, name in now.items()]
            _, found, block = _core.load_slices(path, parts, key, checksums, counter)
        size = max((place[4] for place in found), default=0)
        data = torch.frombuffer(block, dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
        loaded |= {now[place[0]]: tensors.view(data, 0, place) for place in found}
    return {name: loaded[name] for name in wanted}


def ranges(place: TensorPlace, slices: tuple[slice, ...]) -> Ranges:
    """First and one past the last of each dimension as the file counts. Errors: TypeError, ValueError."""
    name, dtype, shape, _, _ = place
    counted = [*shape[:-1], shape[-1] // 2] if dtype == _PACKED else shape
    if len(slices) > len(counted):
        raise ValueError(f"tensor {name} has {len(counted)} dimensions, and {len(slices)} slices are asked for")
    result = []
    for dimension, size in enumerate(counted):
        each = slices[dimension] if dimension < len(slices) else slice(None)
        if not isinstance(each, slice):
            raise TypeError(f"tensor {name}: a {type(each).__name__} is no slice")
        first, last, step = each.indices(size)
        if step != 1:
            raise ValueError(f"tensor {name}: a slice of step {step}; load it whole and index it")
        result.append((first, max(first, last)))
    if dtype == _PACKED:
        result[-1] = (2 * result[-1][0], 2 * result[-1][1])
    return result


def _bytes(place: TensorPlace, part: Ranges) -> int:
    elements = math.prod(place[2])
    return (place[4] - place[3]) * math.prod(last - first for first, last in part) // elements if elements else 0


def load_into(
    path: str, into: dict[str, torch.Tensor], key: bytes | None, checksums: bool, progress: Progress
) -> dict[str, torch.Tensor]:
    for name, tensor in into.items():
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or not storable(tensor.dtype):
            raise TypeError(f"{name}: nothing can be loaded into it")
    aliases = tensors.aliases_of(path, _core.tensor_header(path, key)[0])
    straight: dict[str, str] = {}  # stored name -> name
    for name, tensor in into.items():
        if is_plain(tensor):
            straight.setdefault(aliases.get(name, name), name)
    places = []
    for stored, name in straight.items():
        tensor = into[name]
        places.append((stored, dtype_name(tensor.dtype), stored_shape(tensor), buffers.view(tensor_bytes(tensor))))
    total = sum(tensor.numel() * tensor.element_size() for tensor in into.values())
    with shown(progress, total, f"load {os.path.basename(path)}") as counter:
        if places:
            _core.load_into(path, places, key, checksums, counter)
        others = [name for name in into if name not in straight.values()]
        with stream(path, others, checksums=checksums, key=key) as arriving:
            for name, tensor in arriving:
                _copy(name, tensor, into[name])
    for tensor in into.values():
        torch.autograd.graph.increment_version(tensor)
    return into


def _copy(name: str, tensor: torch.Tensor, into: torch.Tensor) -> None:
    if tensor.dtype != into.dtype or tensor.shape != into.shape:
        stored = f"{tensor.dtype} {list(tensor.shape)}"
        raise ValueError(f"tensor {name} is {stored} in the file, and goes into no {into.dtype} {list(into.shape)}")
    with torch.no_grad():
        into.copy_(tensor)
