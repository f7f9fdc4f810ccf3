"""What Holdfast costs a step: each step in its loop is followed by the same step of a twin that it knows nothing of.

Same process, same group, one after the other, so that whatever else the machine does falls on both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import holdfast
from recovery_lib import workloads


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, default=100)
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    run = holdfast.attach()
    watched, twin = workloads.make(options.case), workloads.make(options.case)
    run.track(model=watched.wrap(), optimizer=watched.optimizer)
    twin.wrap()
    with_ns: list[int] = []
    without_ns: list[int] = []
    clock = time.perf_counter_ns
    began = clock()
    for step in run.steps(options.steps):
        with step:
            watched.step(len(with_ns), rank, ranks)
        # What the loop does between two steps counts as Holdfast's: it runs from the twin's end to the next body.
        middle = clock()
        twin.step(len(with_ns), rank, ranks)
        ended = clock()
        with_ns.append(middle - began)
        without_ns.append(ended - middle)
        began = ended
    times = {"with_ns": with_ns[options.warm_up :], "without_ns": without_ns[options.warm_up :]}
    Path(options.out, f"cost-{rank}.json").write_text(json.dumps(times))


if __name__ == "__main__":
    main()
