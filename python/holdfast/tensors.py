"""Tensor files: safetensors to the letter, with checksums of their own bytes that other readers ignore.

    holdfast.save({"w": w}, "model.safetensors")
    tensors = holdfast.load("model.safetensors")

Paths may be s3://bucket/key, and for reading http(s):// (docs/remote.md). Format: docs/format-tensors.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import torch

from holdfast import archives, buffers
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

ALIASES = "holdfast.aliases"  # metadata: a JSON object, second name of a tensor -> the name it is stored under

Path = str | os.PathLike[str]


COMPRESSION_LEVEL = 1  # zstd's fastest: above it weights hardly shrink further


def save(
    tensors: Mapping[str, torch.Tensor],
    path: Path,
    metadata: Mapping[str, str] | None = None,
    max_shard_bytes: int | str | None = None,
    *,
    key: Key | bytes | None = None,
    compress: bool | int = False,
) -> None:
    """Writes `path` whole or not at all; on return it outlives a crash of the machine. Tensors are stored row-major,
    wherever they are; two names of one tensor (tied weights) are stored once and tied again by `load`; another view of
    the same memory is stored by itself. With `max_shard_bytes` (5_000_000_000, "5GB"), or where `path` is a folder
    (then "5GB"), it is one: model.safetensors, or several files and their index; the model that was there is replaced
    at once. `key`, a `holdfast.Key` or its 32 bytes, encrypts a file; `compress`, True or a level from 1 to 19, shrinks
    it (docs/format-sealed.md). Errors: TypeError for what is no plain tensor, ValueError for what the format has no
    room for, OSError."""
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
    with Stored(unique) as stored:
        save_tensors(_location(path), stored, about, secret, level)


def load(
    path: Path,
    mode: Literal["copy", "map"] = "copy",
    names: Iterable[str] | None = None,
    *,
    key: Key | str | bytes | None = None,
) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, or of a model in several (`path` is their folder or their index), on the CPU,
    by name. `names`: these alone, without reading the others. Also those of a file of torch.save or tensorizer and of a
    folder of torch.distributed.checkpoint, with mode "copy" only (docs/convert.md); of a tensorizer file `key` is the
    text or the 32 bytes that it was encrypted with.

    "copy": into memory of their own, each chunk checked against its checksum as it comes, where the file has them (ours
    do). "map": the file itself, mapped privately, so that writing to a tensor changes no file; nothing is read or
    checked until it is touched (see `verify`), and the file must stay as it is meanwhile: who cuts it short kills this
    process. An encrypted file is copied, and needs its `key`; with a key, a file that is not encrypted is refused.
    Errors: ValueError that names the file, the place and the mend; FileNotFoundError; OSError."""
    if mode not in ("copy", "map"):
        raise ValueError(f'mode is "copy" or "map", not {mode!r}')
    wanted = None if names is None else list(names)
    whole = _location(path)
    shown = shown_location(whole)
    if is_model(whole):
        from holdfast import sharded

        _refuse_key(whole, key)
        return sharded.load(whole, mode, wanted)
    if mode == "map" and is_remote(whole):
        raise ValueError(f'{shown}: only a file on a disk can be mapped; load it with mode="copy"')
    if archives.kind(whole) != archives.SAFETENSORS:
        if mode == "map":
            raise ValueError(f'{shown}: only a safetensors file can be mapped; load it with mode="copy"')
        return archives.load(whole, wanted, _archive_key(key))
    secret = _seal_key(key)
    try:
        return _copied(whole, wanted, secret) if mode == "copy" else _mapped(whole, wanted, secret)
    except ValueError as error:
        raise error if shown in str(error) else ValueError(f"{shown}: {error}") from None


def verify(path: Path, *, key: Key | str | bytes | None = None) -> bool:
    """Reads every byte and checks it. False: a file has no checksums, and only its shape was checked. Takes all that
    `load` takes. Errors: as `load`."""
    whole = _location(path)
    if is_model(whole):
        _refuse_key(whole, key)
        return verify_model(whole)
    if archives.kind(whole) != archives.SAFETENSORS:
        return archives.verify(whole, _archive_key(key))
    return verify_tensors(whole, _seal_key(key))


def _seal_key(key: Key | str | bytes | None) -> bytes | None:
    if isinstance(key, str):
        raise TypeError("key: a text opens tensorizer files alone; others take a holdfast.Key or 32 bytes")
    return key_bytes(key)


def _archive_key(key: Key | str | bytes | None) -> str | bytes | None:
    return key_bytes(key) if isinstance(key, Key) else key


def _refuse_key(path: str, key: Key | str | bytes | None) -> None:
    if key is not None:
        raise ValueError(f"{path}: a model in several files can't be encrypted; save it as one file")


def _location(path: Path) -> str:
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


def _copied(path: str, names: list[str] | None, key: bytes | None) -> dict[str, torch.Tensor]:
    aliases = {} if names is None else aliases_of(path, tensor_header(path, key)[0])
    stored = None if names is None else [aliases.get(name, name) for name in names]
    metadata, places, block = load_tensors(path, stored, key)
    data = torch.frombuffer(block, dtype=torch.uint8) if places and places[-1][4] else torch.empty(0, dtype=torch.uint8)
    return _named({place[0]: _view(data, 0, place) for place in places}, aliases_of(path, metadata), names)


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
    found = {place[0]: _view(data, begin, place) for place in places if stored is None or place[0] in stored}
    missing = [] if stored is None else sorted(stored - set(found))
    if missing:
        raise ValueError(f"holds no tensor {missing[0]}")
    return _named(found, aliases, names)


def _view(data: torch.Tensor, begin: int, place: TensorPlace) -> torch.Tensor:
    name, dtype, shape, first, last = place
    part = data[begin + first : begin + last]
    try:
        return tensor_of(part, dtype, shape)
    except RuntimeError:  # not aligned for its elements, as other writers may leave it
        return tensor_of(part.clone(), dtype, shape)
    except ValueError as error:
        raise ValueError(f"tensor {name}: {error}") from None


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
