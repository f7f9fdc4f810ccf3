"""Runs through what a script does up to its first step: then a spare is as quick as a rank that has done it before."""

from __future__ import annotations

import sys


def first_step() -> None:
    """Seeds, a model, a group, forward, backward, optimizer, all tiny. Leaves nothing behind."""
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import HashStore
    from torch.nn.parallel import DistributedDataParallel

    from holdfast import group

    hook = sys.excepthook  # torch puts a rank before every line of it
    with torch.random.fork_rng(devices=[]):
        if torch.cuda.is_available():
            torch.zeros(1, device="cuda")  # the device context is what a standby is for; not run on a GPU yet
        else:
            torch.manual_seed(0)
        group.make_placeholder(0, 2)
        first, last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        model = torch.nn.Sequential(first, torch.nn.GELU(), torch.nn.LayerNorm(8), last)
        DistributedDataParallel(model)
        dist.destroy_process_group()
        if dist.is_gloo_available():
            dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
            _train(DistributedDataParallel(model))
            dist.destroy_process_group()
    sys.excepthook = hook


def _train(model: object) -> None:
    import torch

    assert isinstance(model, torch.nn.Module)
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.rand(4, 8)), torch.zeros(4, dtype=torch.long))
        torch.autograd.backward(loss)
        optimizer.step()
        scheduler.step()
