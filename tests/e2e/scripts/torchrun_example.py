"""The usual first script of a torchrun user, unmodified: DDP on CPU, a snapshot it resumes from."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--snapshot", default="snapshot.pt")
args = parser.parse_args()

dist.init_process_group(backend="gloo")
model = torch.nn.Linear(4, 1)
start = 0
if os.path.exists(args.snapshot):
    snapshot = torch.load(args.snapshot)
    model.load_state_dict(snapshot["model"])
    start = snapshot["epoch"] + 1
    print(f"[rank {dist.get_rank()}] resuming at epoch {start}", flush=True)
model = DDP(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(start, args.epochs):
    loss = model(torch.ones(2, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        torch.save({"model": model.module.state_dict(), "epoch": epoch}, args.snapshot + ".tmp")
        os.replace(args.snapshot + ".tmp", args.snapshot)
    dist.barrier()
    print(f"[rank {dist.get_rank()}] epoch {epoch} loss {loss.item():.6f}", flush=True)
    if epoch == 1 and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise RuntimeError("a fault of the first attempt")
dist.destroy_process_group()
