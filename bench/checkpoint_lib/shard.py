"""The state that is saved: bf16 parameters of a Llama and an optimizer's fp32 moments, each split over the ranks."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from store_lib.model import shapes

BYTES_EACH = 10  # of a parameter: itself in bf16, two moments in fp32
BLOCK = 1 << 20  # elements
MOMENTS = ("exp_avg", "exp_avg_sq")


def state(gigabytes_a_rank: float, mesh: DeviceMesh) -> dict[str, Any]:
    """DTensors as FSDP2 leaves them: dimension 0 is split evenly, each part is memory of its own."""
    ranks = mesh.size()
    numbers = torch.randn(BLOCK, generator=torch.Generator().manual_seed(mesh.get_local_rank()))
    parameters: dict[str, torch.Tensor] = {}
    moments: dict[str, dict[str, torch.Tensor]] = {}
    for name, shape in shapes(2 * gigabytes_a_rank * ranks / BYTES_EACH).items():
        local = (shape[0] // ranks, *shape[1:])
        parameters[name] = _split(numbers.bfloat16(), local, mesh)
        moments[name] = {kind: _split(numbers, local, mesh) for kind in MOMENTS}
        moments[name]["step"] = torch.tensor(7.0)
    return {"model": parameters, "optimizer": moments, "step": 7}


def _split(numbers: torch.Tensor, local: tuple[int, ...], mesh: DeviceMesh) -> torch.Tensor:
    elements = math.prod(local)
    part = numbers.repeat(elements // BLOCK + 1)[:elements].reshape(local).clone()
    return DTensor.from_local(part, mesh, [Shard(0)], run_check=False)


def local_bytes(value: Any) -> int:
    """Of the parts that this rank holds."""
    if isinstance(value, dict):
        return sum(local_bytes(item) for item in value.values())
    return value.to_local().nbytes if isinstance(value, DTensor) else 0
