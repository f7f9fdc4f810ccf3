"""A step loop with model, optimizer, dropout and a schedule. Prints each step and, at the end, a hash of the weights.
COUNT_STEPS, COUNT_SLEEP; COUNT_AFTER: a collective after the optimizer; COUNT_RAISE: rank 1 raises in that step."""

import hashlib
import os
import random
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import holdfast

steps, sleep = int(os.environ.get("COUNT_STEPS", "40")), float(os.environ.get("COUNT_SLEEP", "0.02"))
torch.manual_seed(7)
run = holdfast.attach("gloo")
print(f"rank {run.rank} pid {os.getpid()} attached", flush=True)
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
run.track(model=model, optimizer=optimizer, scheduler=scheduler)

for step in run.steps(steps):
    with step:
        time.sleep(sleep)
        if int(step) == int(os.environ.get("COUNT_RAISE", "-1")) and run.rank == 1:
            raise ValueError("bad batch")
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8) + random.random()).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if os.environ.get("COUNT_AFTER"):
            dist.all_reduce(loss.detach().clone())
    if run.rank == 0:
        print(f"step {int(step)} done", flush=True)

digest = hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values()))
print(f"weights {digest.hexdigest()}", flush=True)
