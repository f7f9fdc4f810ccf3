"""How each system loads and saves, in a process of its own. Imported there, after what is measured against is known."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]
PAGE = 4096
KEY = bytes(range(32))


def touched(tensors: Tensors) -> Tensors:
    """One byte of every page is read: a lazy load has then done its work."""
    for tensor in tensors.values():
        tensor.reshape(-1).view(torch.uint8)[::PAGE].sum()
    return tensors


def holdfast(**how: Any) -> Callable[[Path], Any]:
    import holdfast as module

    return lambda path: module.load(path, **how)


def holdfast_mapped() -> Callable[[Path], Any]:
    import holdfast as module

    return lambda path: touched(module.load(path, mode="map"))


def safetensors() -> Callable[[Path], Any]:
    from safetensors.torch import load_file

    return lambda path: touched(load_file(path))


def tensorizer(readers: int, **how: Any) -> Callable[[Path], Any]:
    from tensorizer import TensorDeserializer

    def load(path: Path) -> Tensors:
        with TensorDeserializer(str(path), device="cpu", num_readers=readers, **how) as file:
            return dict(file.items())

    return load


def fastsafetensors() -> Callable[[Path], Any]:
    from fastsafetensors import fastsafe_open

    def load(path: Path) -> Any:
        file = fastsafe_open(filenames=[str(path)], nogds=True, device="cpu", debug_log=False)
        opened = file.__enter__()
        return file, {name: opened.get_tensor(name) for name in opened.keys()}

    return load


def runai() -> Callable[[Path | str], Any]:
    os.environ.setdefault("RUNAI_STREAMER_CONCURRENCY", "16")
    from runai_model_streamer import SafetensorsStreamer

    def load(path: Path | str) -> Any:
        with SafetensorsStreamer() as streamer:
            streamer.stream_file(str(path))
            return dict(streamer.get_tensors())

    return load


def holdfast_encrypted() -> Callable[[Path], Any]:
    import holdfast as module

    load: Any = module.load
    return lambda path: load(path, key=KEY)


def tensorizer_encrypted(readers: int) -> Callable[[Path], Any]:
    from tensorizer import DecryptionParams

    return tensorizer(readers, encryption=DecryptionParams.from_key(KEY))


LOADERS: dict[str, Callable[[], Callable[[Path], Any]]] = {
    "holdfast": holdfast,
    "holdfast_unchecked": lambda: holdfast(checksums=False),
    "holdfast_map": holdfast_mapped,
    "safetensors": safetensors,
    "tensorizer_2": lambda: tensorizer(2),
    "tensorizer_4": lambda: tensorizer(4),
    "tensorizer_verified": lambda: tensorizer(4, verify_hash=True),
    "fastsafetensors": fastsafetensors,
    "runai": runai,
    "holdfast_encrypted": holdfast_encrypted,
    "tensorizer_encrypted_1": lambda: tensorizer_encrypted(1),
    "tensorizer_encrypted_2": lambda: tensorizer_encrypted(2),
}


def save_holdfast(tensors: Tensors, path: Path) -> None:
    import holdfast as module

    module.save(tensors, path)


def save_tensorizer(tensors: Tensors, path: Path) -> None:
    """Not synced: it has no such promise."""
    from tensorizer import TensorSerializer

    file = TensorSerializer(str(path))
    file.write_state_dict(tensors)
    file.close()


def save_tensorizer_synced(tensors: Tensors, path: Path) -> None:
    """As durable as ours, but for its name."""
    save_tensorizer(tensors, path)
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def save_safetensors(tensors: Tensors, path: Path) -> None:
    """Not synced: it has no such promise."""
    from safetensors.torch import save_file

    save_file(tensors, path)


def save_encrypted_holdfast(tensors: Tensors, path: Path) -> None:
    import holdfast as module

    save: Any = module.save
    save(tensors, path, key=KEY)


def save_encrypted_tensorizer(tensors: Tensors, path: Path) -> None:
    from tensorizer import EncryptionParams, TensorSerializer

    file = TensorSerializer(str(path), encryption=EncryptionParams(KEY))
    file.write_state_dict(tensors)
    file.close()


SAVERS: dict[str, Callable[[Tensors, Path], None]] = {
    "holdfast": save_holdfast,
    "tensorizer": save_tensorizer,
    "tensorizer_synced": save_tensorizer_synced,
    "safetensors": save_safetensors,
    "holdfast_encrypted": save_encrypted_holdfast,
    "tensorizer_encrypted": save_encrypted_tensorizer,
}
