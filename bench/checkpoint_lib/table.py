"""Rows as text for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from checkpoint_lib.rows import SAVE, STEP_TIME, Row
from holdfast.demo.table import columns


def _spread(values: Sequence[float]) -> list[str]:
    return [f"{1e3 * value:.0f}" for value in (min(values), median(values), max(values))]


def saves(rows: Sequence[Row]) -> list[str]:
    head = ["system", "blocked min", "median", "max", "first", "total min", "median", "max", "first", "GB per CPU-s"]
    cells = [[f"{SAVE} (ms)", *head[1:]]]
    for row in rows:
        if row.case == SAVE:
            numbers = [*_spread(row.blocked), f"{1e3 * median(row.first_blocked):.0f}"]
            numbers += [*_spread(row.total), f"{1e3 * median(row.first_total):.0f}"]
            cells.append([row.system, *numbers, f"{median(row.gb_per_cpu_s):.2f}"])
    return columns(cells, right=frozenset(range(1, len(head)))) if len(cells) > 1 else []


def steps(rows: Sequence[Row]) -> list[str]:
    cells = [[f"{STEP_TIME} (ms)", "step", "while writing: min", "median", "max", "mean", "blocked", "total"]]
    for row in rows:
        if row.case == STEP_TIME:
            of = [f"x {value:.3f}" for value in (min(row.slowdown), median(row.slowdown), max(row.slowdown))]
            numbers = [f"{1e3 * median(row.step_s):.1f}", *of, f"x {median(row.mean_slowdown):.3f}"]
            cells.append([row.system, *numbers, *(f"{1e3 * median(each):.0f}" for each in (row.blocked, row.total))])
    return columns(cells, right=frozenset(range(1, len(cells[0])))) if len(cells) > 1 else []
