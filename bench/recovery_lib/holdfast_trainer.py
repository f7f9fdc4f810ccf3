"""The same training script under Holdfast: its five lines instead of the process group and the checkpoint."""

from __future__ import annotations

import argparse
import itertools
import os
import signal

import holdfast
from holdfast.demo.steplog import StepLog
from recovery_lib import workloads
from recovery_lib.records import note_fault, note_process

STEPS = 1_000_000  # more than any run gets to: the benchmark asks it to stop


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    note_process(options.out, rank)

    block = False

    def block_next_step(*_: object) -> None:
        nonlocal block
        block = True

    signal.signal(signal.SIGUSR2, block_next_step)
    run = holdfast.attach()
    work = workloads.make(options.case)
    run.track(model=work.wrap(), optimizer=work.optimizer)
    log = StepLog(options.out, rank)
    for step in run.steps(STEPS):
        with step:
            if block:
                note_fault(options.out)
                sum(itertools.repeat(0))  # a native loop without end that never gives up the interpreter lock
            loss = work.step(int(step), rank, ranks)
            log.ended(int(step), loss)


if __name__ == "__main__":
    main()
