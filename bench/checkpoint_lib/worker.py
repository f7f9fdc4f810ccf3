"""One rank of one system in a fresh process: several saves, or a training loop with some; rank 0 prints one JSON."""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from checkpoint_lib import shard, systems
from checkpoint_lib.training import Training


def cpu_s() -> float:
    """Of all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def of_all(values: list[float]) -> list[list[float]]:
    """Those of every rank."""
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, values)
    return gathered


def saves(saver: systems.Saver, state: Any, count: int) -> list[dict[str, float]]:
    """Each as the slowest rank had it: that is what a job waits for."""
    result = []
    for step in range(1, count + 1):
        dist.barrier()
        cpu, began = cpu_s(), time.perf_counter()
        saver.save(state, step)
        blocked = time.perf_counter() - began
        saver.wait()
        ranks = of_all([blocked, time.perf_counter() - began, cpu_s() - cpu])
        blocks, totals, cpus = zip(*ranks, strict=True)
        result.append({"blocked": max(blocks), "total": max(totals), "cpu": sum(cpus)})
    return result


def steps(saver: systems.Saver, state: Any, count: int, quiet: int) -> list[dict[str, float]]:
    """`count` times: `quiet` steps without a save, then those that begin and end while one is being written."""
    training = Training()
    saver.save(state, 1)  # the first has memory to find
    while training.step(saver.writing()):
        pass
    saver.wait()
    for _ in range(quiet):
        training.step(False)
    result = []
    for number in range(2, count + 2):
        without = [training.timed(False)[0] for _ in range(quiet)]
        began = time.perf_counter()
        saver.save(state, number)
        blocked = time.perf_counter() - began
        during: list[float] = []
        while True:
            taken, writing = training.timed(saver.writing())
            if not writing:
                break
            during.append(taken)
        saver.wait()
        total = time.perf_counter() - began
        ranks = of_all([blocked, total])
        run = {"without": without, "writing": during}
        result.append(run | {"blocked": max(each[0] for each in ranks), "total": max(each[1] for each in ranks)})
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["save", "step_time"])
    parser.add_argument("system")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gb", type=float, default=0.5)
    parser.add_argument("--saves", type=int, default=4)
    parser.add_argument("--quiet-steps", type=int, default=20)
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), ranks, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    state = shard.state(options.gb, init_device_mesh("cpu", (ranks,)))
    size = shard.local_bytes(state)
    saver = systems.make(options.system, options.folder, size)
    gc.collect()  # else what start-up left falls to the second save
    if options.what == "save":
        runs: list[Any] = saves(saver, state, options.saves)
    else:
        runs = steps(saver, state, options.saves, options.quiet_steps)
    if rank == 0:
        print(json.dumps({"bytes": size, "threads": torch.get_num_threads(), "runs": runs}), flush=True)
    dist.barrier()
    os._exit(0)  # DCP's threads and groups end in any order


if __name__ == "__main__":
    main()
