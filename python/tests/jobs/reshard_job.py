"""Four ranks save a state in each of several layouts and load it in each: prints a line of JSON for every pair."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import holdfast
import holdfast.dcp
import holdfast.state
from holdfast import checkpointer
from holdfast._core import OpenCheckpoint

RANKS = 4
SHAPES: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
    "embed.weight": ((1003, 515), torch.float32),
    "layer.weight": ((512, 768), torch.bfloat16),
    "layer.bias": ((769,), torch.float32),
    "conv.weight": ((6, 5, 33, 7), torch.float16),
}


def whole() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    return {name: torch.randn(shape, generator=generator).to(dtype) for name, (shape, dtype) in SHAPES.items()}


def layouts() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    line = init_device_mesh("cpu", (RANKS,))
    square = init_device_mesh("cpu", (2, 2))

    def on(mesh: Any, *placements: Any) -> Callable[[torch.Tensor], torch.Tensor]:
        def distribute(tensor: torch.Tensor) -> torch.Tensor:
            last = Shard(tensor.dim() - 1)
            fitting = [last if isinstance(each, Shard) and each.dim > last.dim else each for each in placements]
            return distribute_tensor(tensor, mesh, fitting)

        return distribute

    return {
        "data_parallel": lambda tensor: tensor.clone(),
        "fsdp": on(line, Shard(0)),
        "tensor_parallel": on(line, Shard(1)),
        "hsdp": on(square, Replicate(), Shard(0)),
        "2d": on(square, Shard(0), Shard(1)),
    }


def full(tensor: Any) -> torch.Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def needed(state: dict[str, Any]) -> int:
    local = [each.to_local() if hasattr(each, "to_local") else each for each in state.values()]
    return sum(each.numel() * each.element_size() for each in local)


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def work(rank: int, port: int, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    reference = whole()
    for saved, place in layouts().items():
        path = os.path.join(folder, saved)
        writer = holdfast.Checkpointer(path)
        writer.save({"model": {name: place(tensor) for name, tensor in reference.items()}, "step": 5}, 5)
        writer.wait()
        dcp_path = os.path.join(folder, saved + "-dcp")
        dcp.save(
            {name: place(tensor) for name, tensor in reference.items()} | {"step": 5},
            storage_writer=holdfast.dcp.Writer(dcp_path),
        )
        for loaded, other in layouts().items():
            model = {name: other(torch.zeros_like(tensor)) for name, tensor in reference.items()}
            directory = os.path.join(path, "step-000000000005-epoch-1")
            state: dict[str, Any] = {"model": model, "step": 0}
            holdfast.state.flatten(state)  # what it imports is read now
            before = bytes_read()
            opened = OpenCheckpoint(directory)
            checkpointer.fill(opened, state)
            read = bytes_read() - before
            same = all(torch.equal(full(model[name]), tensor) for name, tensor in reference.items())
            again = {name: other(torch.zeros_like(tensor)) for name, tensor in reference.items()} | {"step": 0}
            dcp.load(again, storage_reader=holdfast.dcp.Reader(dcp_path))
            dcp_same = all(torch.equal(full(again[name]), tensor) for name, tensor in reference.items())
            line = {"saved": saved, "loaded": loaded, "rank": rank, "same": same and state["step"] == 5}
            line |= {"dcp_same": dcp_same and again["step"] == 5, "read": read, "needed": needed(model)}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(int(sys.argv[1]), sys.argv[2]), nprocs=RANKS)
