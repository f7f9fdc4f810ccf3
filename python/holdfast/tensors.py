"""Tensor files: safetensors to the letter, with checksums of their own bytes that other readers ignore.

    holdfast.save({"w": w}, "model.safetensors")
    tensors = holdfast.load("model.safetensors")

Format: docs/format-tensors.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

import torch

from holdfast import buffers, memory
from holdfast._core import load_tensors, save_tensors, tensor_header, verify_tensors
from holdfast.progress import Progress, shown
from holdfast.elements import TensorPlace, dtype_name, identity, storable, stored_shape, tensor_bytes, tensor_of

ALIASES = "holdfast.aliases"  # metadata: a JSON object, second name of a tensor -> the name it is stored under

memory.follow_environment()

Path = str | os.PathLike[str]
T = TypeVar("T")


def save(
    tensors: Mapping[str, torch.Tensor],
    path: Path,
    metadata: Mapping[str, str] | None = None,
    *,
    progress: Progress = False,
) -> None:
    """Writes `path` whole or not at all; on return it outlives a crash of the machine. Tensors are stored row-major,
    wherever they are; two names of one tensor (tied weights) are stored once and tied again by `load`; another view of
    the same memory is stored by itself. `progress`: as for `load`. Errors: TypeError for what is no plain tensor,
    ValueError for what the format has no room for, OSError."""
    first_of: dict[tuple[Any, ...], str] = {}
    aliases: dict[str, str] = {}
    stored = []
    alive = []  # the core reads within the call; until then the bytes must stay
    for name, tensor in tensors.items():
        _check(name, tensor)
        if tensor.numel():
            first = first_of.setdefault(identity(tensor), name)
            if first != name:
                aliases[name] = first
                continue
        data = tensor_bytes(tensor)
        alive.append(data)
        stored.append((name, dtype_name(tensor.dtype), stored_shape(tensor), buffers.view(data)))
    about = dict(metadata or {})
    about.setdefault("format", "pt")  # transformers reads no file without it
    if aliases:
        about[ALIASES] = json.dumps(aliases, separators=(",", ":"))
    total = sum(data.numel() for data in alive)
    with shown(progress, total, f"save {os.path.basename(path)}") as counter:
        save_tensors(os.path.abspath(path), stored, about, counter)


def load(
    path: Path,
    mode: Literal["copy", "map"] = "copy",
    names: Iterable[str] | None = None,
    *,
    checksums: bool = True,
    into: Mapping[str, torch.Tensor] | None = None,
    slices: Mapping[str, slice | tuple[slice, ...]] | None = None,
    progress: Progress = False,
) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, on the CPU, by name. `names`: these alone, without reading the others.

    "copy": into memory of their own, each chunk checked against its checksum as it comes, where the file has them (ours
    do). "map": the file itself, mapped privately, so that writing to a tensor changes no file; nothing is read or
    checked until it is touched (see `verify`), and the file must stay as it is meanwhile: who cuts it short kills this
    process.

    `checksums=False` trusts the file's data, not its header.
    `into`: tensors of the same types and shapes, by name, that are filled and returned; these alone are read. Straight
    into a contiguous tensor's memory on the CPU, pinned or not; into others through a few tensors' memory at a time.
    After an error they hold anything.
    `slices`: by name a slice for each dimension, of step 1, missing ones whole; the names in `names` come whole beside
    them. No byte but those of the slices is read, whole rows in one piece, columns run by run. So only chunks (1 MiB of
    the file) of which all bytes are wanted are checked: rows but for their ends, columns not at all.
    `progress`: True draws a bar on a terminal's stderr; a function is called with bytes done and in all, on another
    thread.

    Errors: ValueError that names the file, the place and the mend; TypeError; FileNotFoundError; OSError."""
    if mode not in ("copy", "map"):
        raise ValueError(f'mode is "copy" or "map", not {mode!r}')
    if into is not None and (mode == "map" or names is not None or slices is not None):
        raise ValueError('`into` says what is loaded, by mode="copy", and so goes without `names` and `slices`')
    from holdfast import parts  # which streams, and so needs this module

    wanted = None if names is None else list(names)
    whole = os.path.abspath(path)
    try:
        if into is not None:
            return parts.load_into(whole, dict(into), checksums, progress)
        if slices is not None:
            return parts.load_slices(whole, wanted or [], slices, mode, checksums, progress)
        return _copied(whole, wanted, checksums, progress) if mode == "copy" else _mapped(whole, wanted)
    except ValueError as error:
        raise error if whole in str(error) else ValueError(f"{whole}: {error}") from None


def verify(path: Path) -> bool:
    """Reads every byte and checks it. False: the file has no checksums, and only its shape was checked. Errors: as
    `load`."""
    return verify_tensors(os.path.abspath(path))


def _check(name: str, tensor: Any) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: a {type(tensor).__name__} is no tensor")
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        raise TypeError(f"{name}: a {type(tensor).__name__} can't be stored; store its plain parts")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta or not storable(tensor.dtype):
        raise TypeError(f"{name}: a tensor of {tensor.dtype}, {tensor.layout} on {tensor.device} can't be stored")


def _copied(path: str, names: list[str] | None, checksums: bool, progress: Progress) -> dict[str, torch.Tensor]:
    with shown(progress, lambda: bytes_of(tensor_header(path)[1], names), f"load {os.path.basename(path)}") as counter:
        metadata, places, block = with_stored_names(
            path, names, lambda stored: load_tensors(path, stored, checksums, counter)
        )
    data = torch.frombuffer(block, dtype=torch.uint8) if places and places[-1][4] else torch.empty(0, dtype=torch.uint8)
    return _named({place[0]: view(data, 0, place) for place in places}, aliases_of(path, metadata), names)


def _mapped(path: str, names: list[str] | None) -> dict[str, torch.Tensor]:
    metadata, places, begin, _ = tensor_header(path)
    size = begin + (places[-1][4] if places else 0)
    # Mapped as `shared=False`: pages that are written to become this process's own.
    storage: Any = torch.UntypedStorage.from_file(path, shared=False, nbytes=size)
    data = torch.empty(0, dtype=torch.uint8).set_(storage)
    aliases = aliases_of(path, metadata)
    stored = None if names is None else {aliases.get(name, name) for name in names}
    found = {place[0]: view(data, begin, place) for place in places if stored is None or place[0] in stored}
    missing = [] if stored is None else sorted(stored - set(found))
    if missing:
        raise ValueError(f"holds no tensor {missing[0]}")
    return _named(found, aliases, names)


def view(data: torch.Tensor, begin: int, place: TensorPlace) -> torch.Tensor:
    name, dtype, shape, first, last = place
    part = data[begin + first : begin + last]
    try:
        return tensor_of(part, dtype, shape)
    except RuntimeError:  # not aligned for its elements, as other writers may leave it
        return tensor_of(part.clone(), dtype, shape)
    except ValueError as error:
        raise ValueError(f"tensor {name}: {error}") from None


def with_stored_names(path: str, names: list[str] | None, call: Callable[[list[str] | None], T]) -> T:
    """What `call` makes of the names under which the tensors are stored. The header is read a second time only where
    one of `names` is another tensor's second name."""
    try:
        return call(None if names is None else list(dict.fromkeys(names)))
    except ValueError:
        if names is None:
            raise
        aliases = aliases_of(path, tensor_header(path)[0])
        if not any(name in aliases for name in names):
            raise
    return call(list(dict.fromkeys(aliases.get(name, name) for name in names)))


def bytes_of(places: list[TensorPlace], names: list[str] | None) -> int:
    """Of the tensors of those names."""
    wanted = None if names is None else set(names)
    return sum(place[4] - place[3] for place in places if wanted is None or place[0] in wanted)


def aliases_of(path: str, metadata: Mapping[str, str]) -> dict[str, str]:
    text = metadata.get(ALIASES)
    if text is None:
        return {}
    try:
        aliases = json.loads(text)
    except (ValueError, RecursionError):
        aliases = None
    if not isinstance(aliases, dict) or not all(isinstance(name, str) for name in aliases.values()):
        raise ValueError(f"{path}: metadata {ALIASES} is no table of names")
    return aliases


def _named(
    stored: dict[str, torch.Tensor], aliases: Mapping[str, str], names: list[str] | None
) -> dict[str, torch.Tensor]:
    tied = {alias: stored[name].view_as(stored[name]) for alias, name in aliases.items() if name in stored}
    everything = {**tied, **stored}
    return everything if names is None else {name: everything[name] for name in names}
