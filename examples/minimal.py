"""The smallest run: a counter that is never lost. `holdfast run --nproc-per-node 2 examples/minimal.py`"""

import torch
import torch.distributed as dist

import holdfast

run = holdfast.attach("gloo")
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(model.weight)
run.track(model=model)

for step in run.steps(100):
    with step:
        one = torch.ones(1, 1)
        dist.all_reduce(one)
        with torch.no_grad():
            model.weight += one

print(f"rank {run.rank} of {run.world_size}: counted to {model.weight.item():.0f}", flush=True)
