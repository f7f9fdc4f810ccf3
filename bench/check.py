"""A promise held against what was measured, for all benchmarks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.demo.table import columns


@dataclass(frozen=True)
class Check:
    """One promise: what was measured, the limit, and whether it holds."""

    what: str
    measured: str
    limit: str
    holds: bool


def at_most(what: str, value: float, limit: float, unit: str) -> Check:
    return Check(what, f"{value:.3g} {unit}", f"<= {limit:g} {unit}", value <= limit)


def none(what: str, count: int) -> Check:
    return Check(what, str(count), "0", count == 0)


def times(what: str, value: float, least: float) -> Check:
    return Check(what, f"{value:.2f}", f">= {least:.2f}", value >= least)


def check_lines(checks: Sequence[Check]) -> list[str]:
    """As text for people."""
    cells = [["promise", "measured", "limit", ""]]
    cells += [[check.what, check.measured, check.limit, "met" if check.holds else "MISSED"] for check in checks]
    return columns(cells)
