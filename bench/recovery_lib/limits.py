"""What is promised, held against what was measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from check import Check, at_most, none, times
from recovery_lib.measure import Row

PEERS = ("torchrun", "ft_launcher")
PROMISED_CASE = "sleep50_1mb"
SIGKILL_MEDIAN_S = 0.15
TIMES_FASTER = 20.0
NAMED_S = 0.5
NEXT_STEP_S = 1.0
MARKS_US = 50.0


@dataclass(frozen=True)
class Naming:
    """What Holdfast's report said of the faults of one kind."""

    fault: str
    case: str
    struck: int
    wrong_culprits: int
    detect_s: tuple[float, ...]
    second_restarts: int


def find(rows: Sequence[Row], system: str, fault: str, case: str) -> Row | None:
    return next((row for row in rows if (row.system, row.fault, row.case) == (system, fault, case)), None)


def ratios(rows: Sequence[Row], row: Row) -> dict[str, float]:
    """How many times longer each peer took at the median."""
    found = {peer: find(rows, peer, row.fault, row.case) for peer in PEERS}
    return {peer: other.median() / row.median() for peer, other in found.items() if other and row.median() > 0}


def time_checks(rows: Sequence[Row], case: str) -> list[Check]:
    """The promises on times; a row that was not measured promises nothing."""
    checks = []
    kill = find(rows, "holdfast", "sigkill", case)
    if kill:
        median = kill.median()
        checks.append(at_most("SIGKILL to next step, median", median, SIGKILL_MEDIAN_S, "s"))
        for peer, ratio in ratios(rows, kill).items():
            what = f"times faster than {peer} after SIGKILL"
            checks.append(times(what, ratio, TIMES_FASTER))
    for fault in ("sigstop", "gil"):
        row = find(rows, "holdfast", fault, case)
        if row:
            checks.append(at_most(f"{fault} to next step, max", max(row.seconds), NEXT_STEP_S, "s"))
    return checks


def naming_checks(namings: Sequence[Naming], case: str) -> list[Check]:
    """The promises on who is blamed, how soon (in `case`: longer steps are suspected later), and that one fault costs
    one recovery."""
    checks = []
    for one in namings:
        what = f"{one.case} {one.fault}, {one.struck} times"
        checks.append(none(f"{what}: wrong culprits", one.wrong_culprits))
        checks.append(none(f"{what}: second restarts", one.second_restarts))
        if one.case == case and one.fault in ("sigstop", "gil") and one.detect_s:
            checks.append(at_most(f"{what}: named after, max", max(one.detect_s), NAMED_S, "s"))
    return checks


def cost_check(marks_us: float) -> Check:
    return at_most("marks, a step", marks_us, MARKS_US, "us")
