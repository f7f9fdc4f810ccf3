"""From step logs to numbers. Pure.

The time of a recovery is from the fault to the moment when all ranks have ended the first step that the victim had not
ended before the fault: none can end it without the victim, and steps computed again from a checkpoint don't count.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.demo.steplog import Line


@dataclass(frozen=True)
class Row:
    """What one system did with one kind of fault."""

    system: str
    fault: str
    case: str
    seconds: tuple[float, ...]

    def json(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "fault": self.fault,
            "case": self.case,
            "runs": len(self.seconds),
            "min_s": min(self.seconds),
            "median_s": self.median(),
            "max_s": max(self.seconds),
        }

    def median(self) -> float:
        return statistics.median(self.seconds)


def ended_by_all(logs: Mapping[int, Sequence[Line]]) -> int:
    """The newest step that every rank has ended; -1 for none."""
    return min((max((line.step for line in lines), default=-1) for lines in logs.values()), default=-1)


def step_s(logs: Mapping[int, Sequence[Line]]) -> float:
    """Median seconds from one step's end to the next, on rank 0; 0 where it has not ended two."""
    lines = logs[0]
    gaps = [(b.at_ns - a.at_ns) / 1e9 for a, b in zip(lines, lines[1:], strict=False)]
    return statistics.median(gaps) if gaps else 0.0


def recovery_s(logs: Mapping[int, Sequence[Line]], fault_ns: int, victim: int) -> float | None:
    """Seconds from the fault to the moment when all ranks have ended the step that the victim had not; None before."""
    wanted = max((line.step for line in logs[victim] if line.at_ns <= fault_ns), default=-1) + 1
    moments = []
    for lines in logs.values():
        moment = next((line.at_ns for line in lines if line.step >= wanted), None)
        if moment is None:
            return None
        moments.append(moment)
    return max(0, max(moments) - fault_ns) / 1e9


def restarts_beyond(processes: Mapping[int, int], expected: Mapping[int, int]) -> int:
    """Processes that were a rank beyond those that had to be; rank -> count."""
    return sum(max(0, processes[rank] - expected.get(rank, 1)) for rank in processes)


def wrong_culprits(records: Sequence[Mapping[str, Any]], victims: Sequence[int], verdicts: Sequence[str]) -> int:
    """Faults that the report doesn't name as they were, plus records that nobody's fault explains; all in order."""
    wrong = abs(len(records) - len(victims))
    for record, victim, verdict in zip(records, victims, verdicts, strict=False):
        wrong += list(record["culprit"]) != [victim] or record["verdict"] != verdict
    return wrong


def detected_s(records: Sequence[Mapping[str, Any]], seconds: Sequence[float]) -> tuple[float, ...]:
    """Seconds from each fault to its verdict: those to the next step, which the logs say, less those from the verdict
    to it, which the report says. Empty where records and faults don't match."""
    if len(records) != len(seconds):
        return ()
    after = [record["next_step_s"] for record in records]
    return tuple(max(0.0, s - float(a)) for s, a in zip(seconds, after, strict=True) if a is not None)


def median_difference_us(with_ns: Sequence[int], without_ns: Sequence[int]) -> float:
    """Median of the paired differences, in microseconds."""
    pairs = zip(with_ns, without_ns, strict=True)
    return statistics.median((a - b) / 1e3 for a, b in pairs)


def mean_difference_us(with_ns: Sequence[int], without_ns: Sequence[int], cut: float = 0.01) -> float:
    """Mean of the paired differences without the largest and smallest hundredth (other programs' doing)."""
    differences = sorted((a - b) / 1e3 for a, b in zip(with_ns, without_ns, strict=True))
    drop = int(len(differences) * cut)
    return statistics.fmean(differences[drop : len(differences) - drop])
