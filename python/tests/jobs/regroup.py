"""Breaks the group many times without killing anybody, and counts what each time leaves behind."""

from __future__ import annotations

import argparse
import os
import time

import torch
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
    done = 0
    began = time.monotonic()
    for step in run.steps(options.times):
        with step:
            optimizer.zero_grad()
            if run.rank == 0 and run.epoch == int(step):
                joining._member._ask("break")
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
        done = int(step)
        if step.completed and done in (options.times // 2, options.times - 1):
            descriptors = len(os.listdir("/proc/self/fd"))
            print("descriptors", descriptors, "threads", len(os.listdir("/proc/self/task")), flush=True)
    print(f"{(time.monotonic() - began) / options.times * 1e3:.1f} ms a fault, epoch {run.epoch}")


if __name__ == "__main__":
    main()
