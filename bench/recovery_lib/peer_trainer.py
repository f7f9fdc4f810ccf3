"""The training script under torchrun and ft_launcher: plain DDP, a checkpoint by rank 0 every few steps."""

from __future__ import annotations

import argparse
import datetime
import os
from pathlib import Path

from recovery_lib.records import note_process

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ckpt-every-steps", type=int, default=5)
    parser.add_argument("--group-timeout-s", type=float, default=0.0)
    parser.add_argument("--heartbeats", action="store_true", help="tell ft_launcher's monitor about every step")
    options = parser.parse_args()
    note_process(options.out, RANK)

    import torch
    import torch.distributed as dist

    from holdfast.demo.steplog import StepLog
    from recovery_lib import workloads

    monitor = None
    if options.heartbeats:
        from nvidia_resiliency_ext import fault_tolerance  # type: ignore[import-not-found]

        monitor = fault_tolerance.RankMonitorClient()
        monitor.init_workload_monitoring()
    limit = datetime.timedelta(seconds=options.group_timeout_s) if options.group_timeout_s else None
    dist.init_process_group("gloo", timeout=limit)
    work = workloads.make(options.case)
    work.wrap()
    saved, step = Path(options.out, "checkpoint.pt"), 0
    if saved.exists():
        state = torch.load(saved)
        work.model.load_state_dict(state["model"])
        work.optimizer.load_state_dict(state["optimizer"])
        step = int(state["step"])
    log = StepLog(options.out, RANK)
    while True:  # until the benchmark has seen enough
        loss = work.step(step, RANK, RANKS)
        log.ended(step, loss)
        if monitor:
            monitor.send_heartbeat()
        step += 1
        if RANK == 0 and step % options.ckpt_every_steps == 0:
            whole = {"model": work.model.state_dict(), "optimizer": work.optimizer.state_dict(), "step": step}
            torch.save(whole, f"{saved}.new")
            os.replace(f"{saved}.new", saved)


if __name__ == "__main__":
    main()
