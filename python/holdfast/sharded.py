"""Models in several tensor files with an index, as Hugging Face's packages write them.

    holdfast.save(model.state_dict(), "llama", max_shard_bytes="5GB")
    for name, tensor in holdfast.weights("llama"):
        ...

Format: docs/format-tensors.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Literal

import torch

from holdfast import tensors
from holdfast._core import ModelSave, model_files
from holdfast.elements import dtype_name, stored_shape

WINDOW_BYTES = 256 << 20
TRIES = 3


def weights(path: tensors.Path, window_bytes: int = WINDOW_BYTES) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and tensor, one after the other through the files of a model (a folder, an index, or one file), each byte
    checked as by `load`. About `window_bytes` are read at a time: a tensor that is kept keeps the memory of those read
    with it, so copy what is to stay. Tied tensors come under each name, one after the other. Errors: as `load`."""
    for file, metadata, places in model_files(tensors.location(path)):
        second_names: dict[str, list[str]] = {}
        for alias, stored in tensors.aliases_of(file, metadata).items():
            second_names.setdefault(stored, []).append(alias)
        window: list[str] = []
        size = 0
        for name, _, _, begin, end in places:
            if window and size + end - begin > window_bytes:
                yield from tensors.load(file, names=window).items()
                window, size = [], 0
            window += [name, *second_names.get(name, [])]
            size += end - begin
        yield from tensors.load(file, names=window).items()


def load(path: str, mode: Literal["copy", "map"], names: list[str] | None) -> dict[str, torch.Tensor]:
    """As `holdfast.load`. A model that is replaced meanwhile takes its files along: then it is the new one."""
    for _ in range(TRIES - 1):
        try:
            return _load(path, mode, names)
        except FileNotFoundError:
            if not os.path.exists(path):
                raise
    return _load(path, mode, names)


def _load(path: str, mode: Literal["copy", "map"], names: list[str] | None) -> dict[str, torch.Tensor]:
    files = model_files(path)
    if names is None:
        return {name: tensor for file, _, _ in files for name, tensor in tensors.load(file, mode).items()}
    home: dict[str, str] = {}
    for file, metadata, places in files:
        home |= {place[0]: file for place in places}
    for file, metadata, _ in files:
        aliases = tensors.aliases_of(file, metadata)
        home = {alias: file for alias, stored in aliases.items() if home.get(stored) == file} | home
    missing = sorted(set(names) - set(home))
    if missing:
        raise ValueError(f"{path}: holds no tensor {missing[0]}")
    found: dict[str, torch.Tensor] = {}
    for file in dict.fromkeys(home[name] for name in names):
        found |= tensors.load(file, mode, [name for name in names if home[name] == file])
    return {name: found[name] for name in names}


def save(
    unique: Mapping[str, torch.Tensor],
    aliases: Mapping[str, str],
    folder: tensors.Path,
    metadata: Mapping[str, str],
    max_shard_bytes: int | str,
) -> None:
    """As `holdfast.save`; at most one file's tensors are brought to the CPU at a time."""
    names = list(unique)
    kinds = [(name, dtype_name(tensor.dtype), stored_shape(tensor)) for name, tensor in unique.items()]
    saving = ModelSave(os.path.abspath(folder), kinds, dict(aliases), dict(metadata), str(max_shard_bytes))
    try:
        for file, chosen in enumerate(saving.plan()):
            with tensors.Stored({names[place]: unique[names[place]] for place in chosen}) as stored:
                saving.write(file, stored)
        saving.commit()
    finally:
        saving.close()
