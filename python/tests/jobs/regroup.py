"""Breaks the group many times without killing anybody, and counts what each time leaves behind."""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import holdfast
from holdfast import joining


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1000)
    options = parser.parse_args()
    run = holdfast.attach("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    run.track(model=model, optimizer=optimizer)
    quiet = (options.times // 4, options.times - 1)
    broken: set[int] = set()
    began = time.monotonic()
    for step in run.steps(options.times):
        with step:
            optimizer.zero_grad()
            if run.rank == 0 and step not in quiet and step not in broken:
                broken.add(int(step))
                joining._member._ask("break")
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            if step in quiet:
                descriptors = len(os.listdir("/proc/self/fd"))
                print("descriptors", descriptors, "threads", len(os.listdir("/proc/self/task")), flush=True)
                dist.barrier()  # nobody breaks the group while another counts
    each = (time.monotonic() - began) / options.times * 1e3
    print(f"{each:.1f} ms a fault, {time.process_time() / options.times * 1e3:.1f} ms of work, epoch {run.epoch}")


if __name__ == "__main__":
    main()
