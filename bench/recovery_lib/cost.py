"""Runs the cost trainer under Holdfast and gives microseconds a step."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from recovery_lib.launch import Stuck
from recovery_lib.measure import mean_difference_us, median_difference_us
from recovery_lib.systems import CKPT_EVERY_STEPS, Setting, environment, holdfast

RANKS = 1  # waiting for another rank would hide microseconds, and marks cost each rank the same


@dataclass(frozen=True)
class Cost:
    """Microseconds a step that Holdfast adds, and what the step takes without it."""

    marks_us: float
    snapshots_us: float
    step_us: float

    def json(self) -> dict[str, float]:
        return {"marks_us": self.marks_us, "snapshots_us": self.snapshots_us, "step_us": self.step_us}


Difference = Callable[[list[int], list[int]], float]


def _measure(setting: Setting, steps: int, snapshots: bool, difference: Difference) -> tuple[float, float]:
    """Microseconds that Holdfast adds, and what a step takes without it."""
    setting.folder.mkdir(parents=True)
    words = holdfast(setting)
    script = words.index(setting.script("holdfast_trainer.py"))
    words[script] = setting.script("cost_trainer.py")
    if not snapshots:
        words = [word for word in words if not word.startswith("--ckpt")]
    words.append(f"--steps={steps}")
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        run = subprocess.run(
            words,
            env=environment(setting.root, Path(temporary)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
    result = setting.folder / "cost-0.json"
    if run.returncode != 0 or not result.exists():
        raise Stuck(f"the cost run ended with code {run.returncode}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    times = json.loads(result.read_text())
    with_it, without = (difference(times[key]["first_ns"], times[key]["second_ns"]) for key in ("with", "without"))
    return with_it - without, median(times["without"]["first_ns"]) / 1e3


def measure_cost(setting: Setting, steps: int) -> Cost:
    """Marks: median difference without checkpoints. Snapshots: mean with one every few steps, less the marks."""
    bare = replace(setting, case="bare_1mb", ranks=RANKS)
    marks, step = _measure(replace(bare, folder=setting.folder / "marks"), steps, False, median_difference_us)
    both, _ = _measure(replace(bare, folder=setting.folder / "snapshots"), steps, True, mean_difference_us)
    return Cost(marks, both - marks, step)


def describe(cost: Cost) -> str:
    return (
        f"cost a step ({RANKS} rank, 1 MB of state, {cost.step_us:.0f} us without Holdfast):"
        f" marks {cost.marks_us:.1f} us, a checkpoint every {CKPT_EVERY_STEPS} steps {cost.snapshots_us:.1f} us more"
    )
