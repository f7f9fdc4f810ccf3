"""Rows as text for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.demo.table import columns
from recovery_lib.limits import ratios
from recovery_lib.measure import Row


def times(rows: Sequence[Row]) -> list[str]:
    """Every row, Holdfast's with how many times longer each peer took."""
    cells = [["case", "fault", "system", "runs", "min s", "median s", "max s", "peers took (times)"]]
    for row in sorted(rows, key=lambda row: (row.case, row.fault, row.system != "holdfast", row.system)):
        factor = ratios(rows, row) if row.system == "holdfast" else {}
        numbers = [f"{value:.3f}" for value in (min(row.seconds), row.median(), max(row.seconds))]
        beside = ", ".join(f"{peer} {value:.1f}" for peer, value in factor.items())
        cells.append([row.case, row.fault, row.system, str(len(row.seconds)), *numbers, beside])
    return columns(cells, right=frozenset({3, 4, 5, 6}))
