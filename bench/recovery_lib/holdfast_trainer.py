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

    def hold_interpreter(*_: object) -> None:
        note_fault(options.out)
        sum(itertools.repeat(0))  # a native loop without end that never gives up the interpreter lock

    signal.signal(signal.SIGUSR2, hold_interpreter)
    run = holdfast.attach()
    work = workloads.make(options.case)
    run.track(model=work.wrap(), optimizer=work.optimizer)
    log = StepLog(options.out, rank)
    for step in run.steps(STEPS):
        with step:
            loss = work.step(int(step), rank, ranks)
            log.ended(int(step), loss)


if __name__ == "__main__":
    main()
