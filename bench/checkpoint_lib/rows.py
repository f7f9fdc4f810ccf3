"""What was measured, and the ratios of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

SAVE = "save"
STEP_TIME = "step_time"


@dataclass
class Row:
    """One system in one case. Seconds; of each round the median of its process's saves but the first."""

    case: str
    system: str
    blocked: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    gb_per_cpu_s: list[float] = field(default_factory=list)
    first_blocked: list[float] = field(default_factory=list)
    first_total: list[float] = field(default_factory=list)
    slowdown: list[float] = field(default_factory=list)  # a step's median while writing, of that without
    mean_slowdown: list[float] = field(default_factory=list)
    step_s: list[float] = field(default_factory=list)

    def add(self, result: dict[str, Any], ranks: int) -> None:
        runs = result["runs"]
        if self.case == SAVE:
            self._add_first(runs[0])
            runs = runs[1:] or runs
            size = result["bytes"] * ranks / 1e9
            self.gb_per_cpu_s.append(size / max(1e-9, median(run["cpu"] for run in runs)))
        else:
            self._add_steps([run for run in runs if run["writing"]])
        self.blocked.append(median(run["blocked"] for run in runs))
        self.total.append(median(run["total"] for run in runs))

    def _add_first(self, run: dict[str, float]) -> None:
        self.first_blocked.append(run["blocked"])
        self.first_total.append(run["total"])

    def _add_steps(self, runs: Sequence[dict[str, Any]]) -> None:
        if not runs:
            raise RuntimeError("no step came while a save was being written; save more with --gb")
        without = [step for run in runs for step in run["without"]]
        writing = [step for run in runs for step in run["writing"]]
        self.slowdown.append(median(writing) / median(without))
        self.mean_slowdown.append(mean(writing) / mean(without))
        self.step_s.append(median(without))

    def json(self) -> dict[str, Any]:
        result: dict[str, Any] = {"case": self.case, "system": self.system, "rounds": len(self.total)}
        for name in ("blocked", "total", "slowdown"):
            values = getattr(self, name)
            if values:
                result[name] = {"min": min(values), "median": median(values), "max": max(values)}
        for name in ("gb_per_cpu_s", "first_blocked", "first_total", "mean_slowdown", "step_s"):
            values = getattr(self, name)
            if values:
                result[name] = median(values)
        return result


def find(rows: Sequence[Row], case: str, system: str) -> Row | None:
    return next((row for row in rows if row.case == case and row.system == system), None)


def ratio(row: Row, other: Row, what: str) -> float:
    """Median over the rounds of how many times as long as `other` it took in the same round."""
    return median(one / two for one, two in zip(getattr(row, what), getattr(other, what), strict=False))


def quickest_limit(rows: Sequence[Row]) -> Row | None:
    limits = [row for row in rows if row.case == SAVE and row.system.startswith("limit: ")]
    return min(limits, key=lambda row: median(row.blocked), default=None)
