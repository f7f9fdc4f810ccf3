"""What is promised, and whether it held. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from check import Check
from checkpoint_lib.rows import SAVE, STEP_TIME, Row, find, quickest_limit, ratio

BLOCKED_OF_MEMCPY = 1.2
BLOCKED_OF_DCP = 0.2
TOTAL_OF_DCP_REUSED = 0.5
SLOWDOWN = 1.05


def checks(rows: Sequence[Row]) -> list[Check]:
    """Of what was run."""
    ours = find(rows, SAVE, "holdfast")
    others = (
        (quickest_limit(rows), "blocked", BLOCKED_OF_MEMCPY),
        (find(rows, SAVE, "dcp_async"), "blocked", BLOCKED_OF_DCP),
        (find(rows, SAVE, "dcp_async_reused"), "total", TOTAL_OF_DCP_REUSED),
    )
    found = []
    for other, what, most in others:
        if ours is not None and other is not None:
            found.append(_check(f"{SAVE}: {what}, of {other.system}", ratio(ours, other, what), most))
    training = find(rows, STEP_TIME, "holdfast")
    if training is not None:
        found.append(_check(f"{STEP_TIME}: while writing, of without", median(training.slowdown), SLOWDOWN))
    return found


def _check(what: str, measured: float, most: float) -> Check:
    return Check(what, f"{measured:.3f}", f"<= {most:.2f}", measured <= most)
