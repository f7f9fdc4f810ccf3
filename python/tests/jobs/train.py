"""A small training job for tests: prints each step it completes and a hash of all state at the end."""

from __future__ import annotations

import argparse
import hashlib
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

import holdfast
from holdfast import elements, state


class Noisy(Dataset):
    """Samples that draw from the global streams, as augmentation does."""

    def __len__(self) -> int:
        return 96

    def __getitem__(self, index: int):
        return torch.full((6,), index / 96) + 0.1 * torch.randn(6), torch.tensor(index % 3)


def net(kind: str) -> torch.nn.Module:
    parts = [torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3)]
    if kind == "batch_norm":
        parts.insert(1, torch.nn.BatchNorm1d(16))
    return torch.nn.Sequential(*parts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="plain")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(11)
    run = holdfast.attach("gloo")
    model = DistributedDataParallel(net(options.kind))
    forward = torch.compile(model, backend="eager") if options.kind == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
    run.track(model=model, optimizer=optimizer, scheduler=scheduler)
    dataset = Noisy()
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(
        dataset, batch_size=4, sampler=sampler, num_workers=options.workers, persistent_workers=options.workers > 0
    )
    for step, (inputs, targets) in run.steps(loader, epochs=options.epochs):
        with step:
            if options.kind == "accumulate_over_steps":
                accumulate(step, model, optimizer, inputs, targets)
                continue
            if options.kind == "zero_at_end":
                loss = torch.nn.functional.cross_entropy(forward(inputs), targets)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
            else:
                optimizer.zero_grad()
                halves = 2 if options.kind == "accumulate" else 1
                for part, wanted in zip(inputs.chunk(halves), targets.chunk(halves), strict=True):
                    loss = torch.nn.functional.cross_entropy(forward(part), wanted)
                    loss.backward()
                optimizer.step()
            scheduler.step()
            if options.kind == "late_collective":
                dist.all_reduce(loss.detach())
        if step.completed:
            print("step", int(step), flush=True)
    print("state", fingerprint(model, optimizer, scheduler), flush=True)


def accumulate(step: int, model: DistributedDataParallel, optimizer: torch.optim.Optimizer, inputs, targets) -> None:
    """One optimizer step every three steps; the gradients between are each rank's own."""
    last = step % 3 == 2
    with model.no_sync() if not last else torch.enable_grad():
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()


def fingerprint(*things) -> str:
    flat = state.flatten([thing.state_dict() for thing in things])
    digest = hashlib.sha256(flat.structure.encode())
    for tensor in flat.tensors.values():
        digest.update(bytes(elements.tensor_bytes(tensor).tolist()))
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
