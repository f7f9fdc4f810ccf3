"""Tensor files: safetensors to the letter, with checksums of their own bytes that other readers ignore.

    holdfast.save({"w": w}, "model.safetensors")
    tensors = holdfast.load("model.safetensors")

Paths may be s3://bucket/key, and for reading http(s):// (docs/remote.md). Format: docs/format-tensors.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

import torch

from holdfast import archives, buffers, memory
from holdfast._core import (
    COMPRESSION_LEVEL_MAX,
    is_remote,
    is_sealed,
    load_tensors,
    save_tensors,
    shown_location,
    tensor_header,
    verify_model,
    verify_tensors,
)
from holdfast.elements import TensorPlace, dtype_name, identity, storable, stored_shape, tensor_bytes, tensor_of
from holdfast.keys import Key, key_bytes
from holdfast.member import SavedTensor
from holdfast.progress import Progress, shown

ALIASES = "holdfast.aliases"  # metadata: a JSON object, second name of a tensor -> the name it is stored under

memory.follow_environment()

Path = str | os.PathLike[str]
T = TypeVar("T")


COMPRESSION_LEVEL = 1  # zstd's fastest: above it weights hardly shrink further


def save(
    tensors: Mapping[str, torch.Tensor],
    path: Path,
    metadata: Mapping[str, str] | None = None,
    max_shard_bytes: int | str | None = None,
    *,
    key: Key | bytes | None = None,
    compress: bool | int = False,
    progress: Progress = False,
) -> None:
    """Writes `path` whole or not at all; on return it outlives a crash of the machine. Tensors are stored row-major,
    wherever they are; two names of one tensor (tied weights) are stored once and tied again by `load`; another view of
    the same memory is stored by itself. With `max_shard_bytes` (5_000_000_000, "5GB"), or where `path` is a folder
    (then "5GB"), it is one: model.safetensors, or several files and their index; the model that was there is replaced
    at once. `key`, a `holdfast.Key` or its 32 bytes, encrypts a file; `compress`, True or a level from 1 to 19, shrinks
    it (docs/format-sealed.md). `progress`: as for `load`, of one file. Errors: TypeError for what is no plain tensor,
    ValueError for what the format has no room for, OSError."""
    secret, level = key_bytes(key), _level(compress)
    unique, aliases = told_apart(tensors)
    about = dict(metadata or {})
    about.setdefault("format", "pt")  # transformers reads no file without it
    if max_shard_bytes is not None or os.path.isdir(path):
        from holdfast import sharded

        if secret is not None or level:
            raise ValueError(f"{os.fspath(path)}: a model in several files can't be sealed; save it as one file")
        sharded.save(unique, aliases, path, about, "5GB" if max_shard_bytes is None else max_shard_bytes)
        return
    if aliases:
        about[ALIASES] = json.dumps(aliases, separators=(",", ":"))
    total = sum(tensor.numel() * tensor.element_size() for tensor in unique.values())
    with Stored(unique) as stored, shown(progress, total, f"save {os.path.basename(path)}") as counter:
        save_tensors(location(path), stored, about, secret, level, counter)


def load(
    path: Path,
    mode: Literal["copy", "map"] = "copy",
    names: Iterable[str] | None = None,
    *,
    key: Key | str | bytes | None = None,
    checksums: bool = True,
    into: Mapping[str, torch.Tensor] | None = None,
    slices: Mapping[str, slice | tuple[slice, ...]] | None = None,
    progress: Progress = False,
) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, or of a model in several (`path` is their folder or their index), on the CPU,
    by name. `names`: these alone, without reading the others. Also those of a file of torch.save or tensorizer and of a
    folder of torch.distributed.checkpoint, with mode "copy" only (docs/convert.md); of a tensorizer file `key` is the
    text or the 32 bytes that it was encrypted with.

    "copy": into memory of their own, each chunk checked against its checksum as it comes, where the file has them (ours
    do). "map": the file itself, mapped privately, so that writing to a tensor changes no file; nothing is read or
    checked until it is touched (see `verify`), and the file must stay as it is meanwhile: who cuts it short kills this
    process. An encrypted file is copied, and needs its `key`; with a key, a file that is not encrypted is refused.

    `checksums=False` trusts the file's data, not its header.
    `into`: tensors of the same types and shapes, by name, that are filled and returned; these alone are read. Straight
    into a contiguous tensor's memory on the CPU, pinned or not; into others through a few tensors' memory at a time.
    After an error they hold anything.
    `slices`: by name a slice for each dimension, of step 1, missing ones whole; the names in `names` come whole beside
    them. No byte but those of the slices is read, whole rows in one piece, columns run by run. So only chunks (1 MiB of
    the file) of which all bytes are wanted are checked: rows but for their ends, columns not at all.
    `progress`: True draws a bar on a terminal's stderr; a function is called with bytes done and in all, on another
    thread. These four are for one safetensors file.

    Errors: ValueError that names the file, the place and the mend; TypeError; FileNotFoundError; OSError."""
    if mode not in ("copy", "map"):
        raise ValueError(f'mode is "copy" or "map", not {mode!r}')
    if into is not None and (mode == "map" or names is not None or slices is not None):
        raise ValueError('`into` says what is loaded, by mode="copy", and so goes without `names` and `slices`')
    if not isinstance(key, str):
        key_bytes(key)  # a wrong one is told before anything is opened
    parted = into is not None or slices is not None
    wanted = None if names is None else list(names)
    whole = location(path)
    shown_path = shown_location(whole)
    if parted and is_model(whole):
        raise ValueError(f"{shown_path}: `into` and `slices` are for one safetensors file")
    if is_model(whole):
        from holdfast import sharded

        _refuse_key(whole, key)
        return sharded.load(whole, mode, wanted)
    if mode == "map" and is_remote(whole):
        raise ValueError(f'{shown_path}: only a file on a disk can be mapped; load it with mode="copy"')
    if not is_remote(whole) and archives.kind(whole) != archives.SAFETENSORS:
        return _load_archive(whole, mode, parted, wanted, key)
    secret = _seal_key(shown_path, key)
    from holdfast import parts  # which streams, and so needs this module

    try:
        if into is not None:
            return parts.load_into(whole, dict(into), secret, checksums, progress)
        if slices is not None:
            return parts.load_slices(whole, wanted or [], slices, mode, secret, checksums, progress)
        if mode == "copy":
            return _copied(whole, wanted, secret, checksums, progress)
        return _mapped(whole, wanted, secret)
    except ValueError as error:
        # Only now, since asking for its kind costs a round trip.
        if is_remote(whole) and archives.kind(whole) != archives.SAFETENSORS:
            return _load_archive(whole, mode, parted, wanted, key)
        raise error if shown_path in str(error) else ValueError(f"{shown_path}: {error}") from None


def _load_archive(
    path: str, mode: str, parted: bool, names: list[str] | None, key: Key | str | bytes | None
) -> dict[str, torch.Tensor]:
    if mode == "map":
        raise ValueError(f'{shown_location(path)}: only a safetensors file can be mapped; load it with mode="copy"')
    if parted:
        raise ValueError(f"{shown_location(path)}: only a safetensors file is loaded in parts; convert it")
    return archives.load(path, names, _archive_key(key))


def verify(path: Path, *, key: Key | str | bytes | None = None) -> bool:
    """Reads every byte and checks it. False: a file has no checksums, and only its shape was checked. Takes all that
    `load` takes. Errors: as `load`."""
    whole = location(path)
    if is_model(whole):
        _refuse_key(whole, key)
        return verify_model(whole)
    if not is_remote(whole) and archives.kind(whole) != archives.SAFETENSORS:
        return archives.verify(whole, _archive_key(key))
    try:
        return verify_tensors(whole, _seal_key(shown_location(whole), key))
    except ValueError:
        if is_remote(whole) and archives.kind(whole) != archives.SAFETENSORS:
            return archives.verify(whole, _archive_key(key))
        raise


def _seal_key(path: str, key: Key | str | bytes | None) -> bytes | None:
    if isinstance(key, str):
        raise ValueError(f"{path}: is no tensorizer file, which a text could open; give a holdfast.Key or its 32 bytes")
    return key_bytes(key)


def _archive_key(key: Key | str | bytes | None) -> str | bytes | None:
    return key_bytes(key) if isinstance(key, Key) else key


def _refuse_key(path: str, key: Key | str | bytes | None) -> None:
    if key is not None:
        raise ValueError(f"{path}: a model in several files can't be encrypted; save it as one file")


def location(path: Path) -> str:
    return path if isinstance(path, str) and is_remote(path) else os.path.abspath(path)


def is_model(path: str) -> bool:
    """Whether `path` is a model's folder or its index, not a tensor file."""
    return path.endswith(".json") or (os.path.isdir(path) and not os.path.exists(os.path.join(path, ".metadata")))


def told_apart(tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Each tensor once, and the other names of those that have several. Errors: TypeError."""
    first_of: dict[tuple[Any, ...], str] = {}
    unique: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    for name, tensor in tensors.items():
        _check(name, tensor)
        first = first_of.setdefault(identity(tensor), name) if tensor.numel() else name
        if first == name:
            unique[name] = tensor
        else:
            aliases[name] = first
    return unique, aliases


class Stored:
    """Tensors as the core takes them. Their bytes stay as long as the `with` block: the core reads within its calls."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._data = [tensor_bytes(tensor) for tensor in tensors.values()]
        self._list = [
            (name, dtype_name(tensor.dtype), stored_shape(tensor), buffers.view(data))
            for (name, tensor), data in zip(tensors.items(), self._data, strict=True)
        ]

    def __enter__(self) -> list[SavedTensor]:
        return self._list

    def __exit__(self, *_: object) -> None:
        self._list.clear()
        self._data.clear()


def _level(compress: bool | int) -> int:
    level = COMPRESSION_LEVEL if compress is True else int(compress)
    if not 0 <= level <= COMPRESSION_LEVEL_MAX:
        raise ValueError(f"compress is True, False or a level from 1 to {COMPRESSION_LEVEL_MAX}, not {compress}")
    return level


def _check(name: str, tensor: Any) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: a {type(tensor).__name__} is no tensor")
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        raise TypeError(f"{name}: a {type(tensor).__name__} can't be stored; store its plain parts")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta or not storable(tensor.dtype):
        raise TypeError(f"{name}: a tensor of {tensor.dtype}, {tensor.layout} on {tensor.device} can't be stored")


def _copied(
    path: str, names: list[str] | None, key: bytes | None, checksums: bool, progress: Progress
) -> dict[str, torch.Tensor]:
    def total() -> int:
        return bytes_of(tensor_header(path, key)[1], names)

    with shown(progress, total, f"load {os.path.basename(path)}") as counter:
        metadata, places, block = with_stored_names(
            path, names, key, lambda stored: load_tensors(path, stored, key, checksums, counter)
        )
    data = torch.frombuffer(block, dtype=torch.uint8) if places and places[-1][4] else torch.empty(0, dtype=torch.uint8)
    return _named({place[0]: view(data, 0, place) for place in places}, aliases_of(path, metadata), names)


def _mapped(path: str, names: list[str] | None, key: bytes | None) -> dict[str, torch.Tensor]:
    if is_sealed(path):
        raise ValueError('is encrypted or compressed, so it can\'t be mapped; load it with mode="copy"')
    metadata, places, begin, _ = tensor_header(path, key)
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


def with_stored_names(
    path: str, names: list[str] | None, key: bytes | None, call: Callable[[list[str] | None], T]
) -> T:
    """What `call` makes of the names under which the tensors are stored. The header is read a second time only where
    one of `names` is another tensor's second name."""
    try:
        return call(None if names is None else list(dict.fromkeys(names)))
    except ValueError:
        if names is None:
            raise
        aliases = aliases_of(path, tensor_header(path, key)[0])
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
        raise ValueError(f"{shown_location(path)}: metadata {ALIASES} is no table of names")
    return aliases


def _named(
    stored: dict[str, torch.Tensor], aliases: Mapping[str, str], names: list[str] | None
) -> dict[str, torch.Tensor]:
    tied = {alias: stored[name].view_as(stored[name]) for alias, name in aliases.items() if name in stored}
    everything = {**tied, **stored}
    return everything if names is None else {name: everything[name] for name in names}
