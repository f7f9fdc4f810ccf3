"""A data-parallel training loop. `plain.py` is written by hand; `with_holdfast.py` differs in five lines."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--samples", type=int, default=16384)
options = parser.parse_args()

torch.manual_seed(1)
dist.init_process_group("gloo")
points = torch.rand(options.samples, 2) * 4 - 2
heights = torch.sin(points[:, :1] * 2) * torch.cos(points[:, 1:])
dataset = TensorDataset(points, heights)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)

layers = [torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)]
model = DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader))

for step, (inputs, targets) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 16 == 0 and dist.get_rank() == 0:
        print(f"step {step:4d}  loss {loss.item():.4f}", flush=True)

if dist.get_rank() == 0:
    print(f"done: loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
