"""Data-loading workers under a rank that never ends."""

import time

import torch
from torch.utils.data import DataLoader, Dataset

import holdfast


class Endless(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index])


run = holdfast.attach("gloo")
run.track(model=torch.nn.Linear(1, 1))
for step, _batch in run.steps(DataLoader(Endless(), num_workers=2), epochs=1):
    with step:
        time.sleep(0.05)
    if run.rank == 0:
        print(f"step {int(step)} done", flush=True)
