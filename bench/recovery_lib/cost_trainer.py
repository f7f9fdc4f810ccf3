"""What Holdfast costs a step: each step in its loop is followed by the same step of a twin that it knows nothing of.

Same process, same group, one after the other, so that whatever else the machine does falls on both alike. Being first
or second makes a difference of its own: before the loop, the two take turns without Holdfast to show how much.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import holdfast
from recovery_lib import workloads

Turns = dict[str, list[int]]


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
    clock = time.perf_counter_ns

    def turns(steps: Iterable[Any]) -> Turns:
        first: list[int] = []
        second: list[int] = []
        began = clock()
        for step in steps:
            with step:
                watched.step(len(first), rank, ranks)
            # What the loop does between two steps counts as the first one's: it runs from the twin's end to its body.
            middle = clock()
            twin.step(len(first), rank, ranks)
            ended = clock()
            first.append(middle - began)
            second.append(ended - middle)
            began = ended
        return {"first_ns": first[options.warm_up :], "second_ns": second[options.warm_up :]}

    without = turns([nullcontext()] * options.steps)
    times = {"without": without, "with": turns(run.steps(options.steps))}
    Path(options.out, f"cost-{rank}.json").write_text(json.dumps(times))


if __name__ == "__main__":
    main()
