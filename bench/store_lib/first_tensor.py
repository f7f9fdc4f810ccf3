"""The time from opening a remote file to its first tensor: the one that lies first, and a small one by its name."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

SMALL = "model.norm.weight"


def holdfast(names: list[str] | None) -> Callable[[str], tuple[Any, torch.Tensor]]:
    import holdfast as module

    def first(url: str) -> tuple[Any, torch.Tensor]:
        stream = module.stream(url, names)
        return stream, next(stream)[1]

    return first


def tensorizer(names: list[str] | None) -> Callable[[str], tuple[Any, torch.Tensor]]:
    from tensorizer import TensorDeserializer, stream_io

    def first(url: str) -> tuple[Any, torch.Tensor]:
        file = TensorDeserializer(stream_io.open_stream(url), device="cpu", lazy_load=True)
        return file, file[names[0]] if names else next(iter(file.values()))

    return first


# Each gives what is to be closed, and the tensor.
FIRST: dict[str, Callable[[], Callable[[str], tuple[Any, torch.Tensor]]]] = {
    "holdfast": lambda: holdfast(None),
    "holdfast_small": lambda: holdfast([SMALL]),
    "tensorizer": lambda: tensorizer(None),
    "tensorizer_small": lambda: tensorizer([SMALL]),
}


def measure(system: str, url: str, runs: int) -> dict[str, Any]:
    first = FIRST[system]()
    result, size = [], 0
    for _ in range(runs):
        cpu, wall = time.process_time(), time.perf_counter()
        opened, tensor = first(url)
        tensor.reshape(-1)[-1].item()
        result.append({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu})
        size = tensor.nbytes
        opened.close()
        del opened, tensor
    return {"runs": result, "bytes": size}
