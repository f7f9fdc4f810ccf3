"""What was measured, and the ratios of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass
class Row:
    """One system in one case: a number for each round, the median of its process's runs but the first."""

    case: str
    system: str
    wall_s: list[float] = field(default_factory=list)
    gb_per_s: list[float] = field(default_factory=list)
    gb_per_cpu_s: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # GB/s of each process's first run
    peak_rss: int = 0
    peak_above: int = 0  # beyond the process after its imports

    def add(self, result: dict[str, Any], size: int) -> None:
        runs = result["runs"]
        steady = runs[1:] or runs
        self.first.append(size / 1e9 / runs[0]["wall"])
        self.wall_s.append(median(run["wall"] for run in steady))
        self.gb_per_s.append(size / 1e9 / self.wall_s[-1])
        self.gb_per_cpu_s.append(size / 1e9 / max(1e-9, median(run["cpu"] for run in steady)))
        self.peak_rss = max(self.peak_rss, result.get("peak_rss", 0))
        self.peak_above = max(self.peak_above, result.get("peak_above", 0))

    def json(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "case": self.case,
            "min": min(self.gb_per_s),
            "median": median(self.gb_per_s),
            "max": max(self.gb_per_s),
            "gb_per_cpu_s": median(self.gb_per_cpu_s),
            "first": median(self.first),
            "wall_s": median(self.wall_s),
            "rounds": len(self.gb_per_s),
            "peak_rss": self.peak_rss,
        }


def find(rows: Sequence[Row], case: str, system: str) -> Row | None:
    return next((row for row in rows if row.case == case and row.system == system), None)


def ratio(row: Row, other: Row, cpu: bool = False) -> float:
    """Median over the rounds of how many times `other` it was in the same round."""
    mine, its = (row.gb_per_cpu_s, other.gb_per_cpu_s) if cpu else (row.gb_per_s, other.gb_per_s)
    return median(one / two for one, two in zip(mine, its, strict=False))


def best_of(rows: Sequence[Row], case: str, start: str) -> Row | None:
    """The quickest of the rows whose system begins so."""
    found = [row for row in rows if row.case == case and row.system.startswith(start)]
    return max(found, key=lambda row: median(row.gb_per_s), default=None)


def limit_of(rows: Sequence[Row], case: str) -> Row | None:
    """What a case is held against: its quickest limit. Copies in memory only show what the machine could."""
    here = [row for row in rows if row.case == case and row.system.startswith("limit: ")]
    limits = [row for row in here if "memcpy" not in row.system]
    return max(limits, key=lambda row: median(row.gb_per_s), default=None)


def best_peer(rows: Sequence[Row], case: str) -> Row | None:
    peers = [row for row in rows if row.case == case and not row.system.startswith(("holdfast", "limit: "))]
    return max(peers, key=lambda row: median(row.gb_per_s), default=None)
