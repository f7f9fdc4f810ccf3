"""Two ranks that reduce without pause while each step is saved: prints what came of it as a line of JSON.

    collectives_job.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import holdfast

RANKS, STEPS = 2, 60


def rank_main(rank: int, folder: str) -> None:
    store = dist.FileStore(f"{folder}/store", RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
    checkpointer = holdfast.Checkpointer(f"{folder}/checkpoints")
    wrong = 0
    state: dict[str, Any] = {"w": torch.zeros(300_000)}
    for step in range(1, STEPS + 1):
        for count in range(20):
            value = torch.full((1000,), float(rank + count + step))
            dist.all_reduce(value)
            wrong += not torch.equal(value, torch.full((1000,), 2.0 * (count + step) + 1))
        state["w"] += 1
        checkpointer.save(state, step)
    checkpointer.wait()
    fresh: dict[str, Any] = {"w": torch.zeros(300_000)}
    loaded = holdfast.Checkpointer(f"{folder}/checkpoints").load(fresh)
    wrong += not torch.equal(fresh["w"], state["w"])
    if rank == 0:
        print(json.dumps({"steps": STEPS, "wrong": wrong, "loaded": loaded}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    mp.spawn(rank_main, (sys.argv[1],), RANKS)
