"""Knows nothing of Holdfast: what a torchrun user has.
PLAIN_FAIL=kill|segv|raise: rank 1 does so at the first attempt."""

import os
import signal
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
assert rank == int(os.environ["RANK"]) == int(os.environ["LOCAL_RANK"])
assert dist.get_world_size() == int(os.environ["WORLD_SIZE"])
value = torch.tensor([float(rank + 1)])
dist.all_reduce(value)
print(f"attempt {attempt} rank {rank} sum {value.item():.0f} args {sys.argv[1:]}", flush=True)
if attempt == 0 and rank == 1:
    fail = os.environ.get("PLAIN_FAIL", "")
    if fail == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fail == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fail == "raise":
        raise ValueError("no such luck")
dist.barrier()
if os.environ.get("PLAIN_LEAVE") and rank == 0:
    os._exit(0)  # the rank that torch would have host the store
if os.environ.get("PLAIN_LEAVE"):
    store = dist.distributed_c10d._get_default_store()
    store.set(f"late/{rank}", "x")
    assert store.get(f"late/{rank}") == b"x"
print(f"rank {rank} done", flush=True)
os._exit(0)
