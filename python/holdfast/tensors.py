"""Tensor files: safetensors to the letter, with checksums of their own bytes that other readers ignore.

    holdfast.save({"w": w}, "model.safetensors")
    tensors = holdfast.load("model.safetensors")

Format: docs/format-tensors.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import torch

from holdfast import buffers
from holdfast._core import COMPRESSION_LEVEL_MAX, is_sealed, load_tensors, save_tensors, tensor_header, verify_tensors
from holdfast.elements import TensorPlace, dtype_name, identity, storable, stored_shape, tensor_bytes, tensor_of
from holdfast.keys import Key, key_bytes

ALIASES = "holdfast.aliases"  # metadata: a JSON object, second name of a tensor -> the name it is stored under

Path = str | os.PathLike[str]


COMPRESSION_LEVEL = 1  # zstd's fastest: above it weights hardly shrink further


def save(
    tensors: Mapping[str, torch.Tensor],
    path: Path,
    metadata: Mapping[str, str] | None = None,
    *,
    key: Key | bytes | None = None,
    compress: bool | int = False,
) -> None:
    """Writes `path` whole or not at all; on return it outlives a crash of the machine. Tensors are stored row-major,
    wherever they are; two names of one tensor (tied weights) are stored once and tied again by `load`; another view of
    the same memory is stored by itself. `key`, a `holdfast.Key` or its 32 bytes, encrypts the file; `compress`, True or
    a level from 1 to 19, shrinks it (docs/format-sealed.md). Errors: TypeError for what is no plain tensor, ValueError
    for what the format has no room for, OSError."""
    secret, level = key_bytes(key), _level(compress)
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
    save_tensors(os.path.abspath(path), stored, about, secret, level)


def load(
    path: Path,
    mode: Literal["copy", "map"] = "copy",
    names: Iterable[str] | None = None,
    *,
    key: Key | bytes | None = None,
) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, on the CPU, by name. `names`: these alone, without reading the others.

    "copy": into memory of their own, each chunk checked against its checksum as it comes, where the file has them (ours
    do). "map": the file itself, mapped privately, so that writing to a tensor changes no file; nothing is read or
    checked until it is touched (see `verify`), and the file must stay as it is meanwhile: who cuts it short kills this
    process. An encrypted file is copied, and needs its `key`; with a key, a file that is not encrypted is refused.
    Errors: ValueError that names the file, the place and the mend; FileNotFoundError; OSError."""
    if mode not in ("copy", "map"):
        raise ValueError(f'mode is "copy" or "map", not {mode!r}')
    wanted = None if names is None else list(names)
    whole, secret = os.path.abspath(path), key_bytes(key)
    try:
        return _copied(whole, wanted, secret) if mode == "copy" else _mapped(whole, wanted, secret)
    except ValueError as error:
        raise error if whole in str(error) else ValueError(f"{whole}: {error}") from None


def verify(path: Path, *, key: Key | bytes | None = None) -> bool:
    """Reads every byte and checks it. False: the file has no checksums, and only its shape was checked. Errors: as
    `load`."""
    return verify_tensors(os.path.abspath(path), key_bytes(key))


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
    aliases = {} if names is None else _aliases(path, tensor_header(path, key)[0])
    stored = None if names is None else [aliases.get(name, name) for name in names]
    metadata, places, block = load_tensors(path, stored, key)
    data = torch.frombuffer(block, dtype=torch.uint8) if places and places[-1][4] else torch.empty(0, dtype=torch.uint8)
    return _named({place[0]: _view(data, 0, place) for place in places}, _aliases(path, metadata), names)


def _mapped(path: str, names: list[str] | None, key: bytes | None) -> dict[str, torch.Tensor]:
    if is_sealed(path):
        raise ValueError('is encrypted or compressed, so it can\'t be mapped; load it with mode="copy"')
    metadata, places, begin, _ = tensor_header(path, key)
    size = begin + (places[-1][4] if places else 0)
    # Mapped as `shared=False`: pages that are written to become this process's own.
    storage: Any = torch.UntypedStorage.from_file(path, shared=False, nbytes=size)
    data = torch.empty(0, dtype=torch.uint8).set_(storage)
    aliases = _aliases(path, metadata)
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


def _aliases(path: str, metadata: Mapping[str, str]) -> dict[str, str]:
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
