"""Runs through what a first step needs, so that a spare's first step is as fast as any other's."""

from __future__ import annotations


def first_step() -> None:
    """Forward, backward, optimizer and a model wrapper, all tiny. Leaves nothing behind."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from holdfast import group

    if torch.cuda.is_available():
        # The device context is what a standby process is for. Not run on a GPU yet.
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.zeros(1, device="cuda")
    with torch.random.fork_rng(devices=[]):
        group.make_placeholder(0, 2)
        layers = [torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)]
        model = torch.nn.Sequential(*layers)
        DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(torch.zeros(4, 8)), torch.zeros(4, dtype=torch.long))
            torch.autograd.backward(loss)
            optimizer.step()
        dist.destroy_process_group()
