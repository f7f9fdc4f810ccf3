"""Holds a run's report against the faults that were planned: found, rightly named, and what it cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.demo.schedule import Fault

# The verdicts that name each kind rightly.
VERDICTS: Mapping[str, frozenset[str]] = {
    "sigkill": frozenset({"killed"}),
    "sigstop": frozenset({"stopped"}),
    "sleep": frozenset({"hung"}),
    "gil": frozenset({"gil_held"}),
    "slow": frozenset({"slow"}),
    "kill_in_recovery": frozenset({"killed"}),
    "flip_checkpoint": frozenset({"checkpoint_damaged"}),
    "disk_full": frozenset({"checkpoint_failed"}),
    "writer_crash": frozenset({"crashed", "killed"}),
}
# Every rank starts again from disk.
FULL_RESTART = frozenset({"flip_checkpoint"})
# The run goes on without a recovery.
NO_RECOVERY = frozenset({"slow", "disk_full"})


@dataclass(frozen=True)
class Judged:
    """One planned fault and what the report says of it. Times are None where the report has none."""

    fault: Fault
    found: bool
    named: bool
    verdict: str
    culprit: tuple[int, ...]
    detect_s: float | None
    next_step_s: float | None

    def row(self) -> dict[str, Any]:
        """The entry in the demo's JSON."""
        return {
            "kind": self.fault.kind,
            "found": self.found,
            "named": self.named,
            "culprit": list(self.culprit),
            "detect_s": self.detect_s,
            "next_step_s": self.next_step_s,
        }


@dataclass(frozen=True)
class Verdict:
    """All faults judged, and in plain words everything that is wrong with the run."""

    faults: Sequence[Judged]
    wrongs: Sequence[str] = field(default_factory=list)


def sort_records(
    faults: Sequence[Fault], report: Mapping[str, Any]
) -> tuple[list[list[Mapping[str, Any]]], list[Mapping[str, Any]]]:
    """Each fault's own records, and those that no fault explains.

    The report's `injected` lists the plan in its order, each entry with the indices of the records that may answer it:
    of several faults that claim a record the last struck one has it. The kills of a full restart are that fault's too.
    """
    records = report["faults"]
    own: list[list[Mapping[str, Any]]] = [[] for _ in faults]
    strange = []
    for index, record in enumerate(records):
        claims = [i for i, entry in enumerate(report.get("injected", [])) if index in entry["faults"]]
        claims += _restarts_behind(record, faults)
        if claims:
            own[max(claims, key=lambda i: faults[i].step)].append(record)
        else:
            strange.append(record)
    return own, strange


def _restarts_behind(record: Mapping[str, Any], faults: Sequence[Fault]) -> list[int]:
    """The planned full restarts that this kill may belong to."""
    return [
        index
        for index, fault in enumerate(faults)
        if fault.plan_kind in FULL_RESTART and record["verdict"] == "killed" and 0 <= record["step"] - fault.step <= 1
    ]


def _number(values: Iterable[Any]) -> float | None:
    """The longest of the times given; -1 and null stand for none."""
    numbers = [float(value) for value in values if value is not None and float(value) >= 0]
    return max(numbers) if numbers else None


def judge_fault(fault: Fault, records: Sequence[Mapping[str, Any]]) -> Judged:
    """Named means: every verdict of the fault's own `records` is right, and exactly its ranks are blamed.

    A flipped byte is named by the checkpoint that did not verify; the kills that force the restart are part of it.
    """
    wanted = VERDICTS.get(fault.plan_kind, frozenset())
    restart = fault.plan_kind in FULL_RESTART
    verdicts = [str(record["verdict"]) for record in records]
    culprit = tuple(sorted({int(rank) for record in records for rank in record["culprit"]}))
    if restart:
        named = bool(wanted & set(verdicts)) and set(verdicts) <= wanted | {"killed"}
    else:
        named = bool(records) and set(verdicts) <= wanted and culprit == tuple(sorted(fault.ranks))
    return Judged(
        fault=fault,
        found=bool(records),
        named=named,
        verdict="+".join(dict.fromkeys(verdicts)) or "none",
        culprit=culprit,
        detect_s=_number(record.get("detect_s") for record in records),
        next_step_s=_number(record.get("next_step_s") for record in records),
    )


def redone_limit(faults: Iterable[Fault], interval: int) -> int:
    """Steps that may be computed again in all: 1 for a recovery in place, 2 checkpoint intervals for a full restart."""
    limit = 0
    for fault in faults:
        if fault.plan_kind in FULL_RESTART:
            limit += 2 * interval
        elif fault.plan_kind not in NO_RECOVERY:
            limit += 1
    return limit


def judge(faults: Sequence[Fault], report: Mapping[str, Any], steps: int, interval: int) -> Verdict:
    """Judges every planned fault; a record that no plan explains is a false alarm and a wrong."""
    own, strange = sort_records(faults, report)
    judged = [judge_fault(fault, records) for fault, records in zip(faults, own, strict=True)]
    wrongs = [_what_is_wrong(one) for one in judged if not (one.found and one.named)]
    for record in strange:
        wrongs.append(f"false alarm at step {record['step']}: {record['verdict']} of {list(record['culprit'])}")
    return Verdict(judged, wrongs + run_wrongs(faults, report, steps, interval))


def run_wrongs(faults: Sequence[Fault], report: Mapping[str, Any], steps: int, interval: int) -> list[str]:
    """What is wrong with the run as a whole."""
    wrongs = []
    if report["exit_code"] != 0:
        wrongs.append(f"the run ended with exit code {report['exit_code']}")
    if report["steps_lost"]:
        wrongs.append(f"{report['steps_lost']} steps lost")
    if report["steps"] != steps:
        wrongs.append(f"the run says it did {report['steps']} steps, {steps} were asked for")
    limit = redone_limit(faults, interval)
    if report["steps_redone"] > limit:
        wrongs.append(f"{report['steps_redone']} steps computed again, at most {limit} are allowed")
    gap = bucket_gap(report)
    if gap > 1e-6:
        wrongs.append(f"the goodput buckets miss the wall clock by {gap:.3g} of it")
    return wrongs


def bucket_gap(report: Mapping[str, Any]) -> float:
    """How far the buckets' sum is from the wall clock, as a part of it."""
    wall = float(report["wall_s"])
    return abs(sum(float(value) for value in report["goodput"].values()) - wall) / wall if wall > 0 else 1.0


def _what_is_wrong(one: Judged) -> str:
    what = f"{one.fault.title} at step {one.fault.step}, ranks {list(one.fault.ranks)}"
    if not one.found:
        return f"{what}: missed"
    return f"{what}: named {one.verdict} of {list(one.culprit)}"
