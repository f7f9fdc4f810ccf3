"""Rows as text for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from holdfast.demo.table import columns
from store_lib.rows import Row, best_peer, limit_of, ratio


def speeds(rows: Sequence[Row]) -> list[str]:
    head = ["case", "system", "min", "median", "max", "first", "ms"]
    head += ["GB per CPU-s", "of limit", "of best peer", "peak MB"]
    cells = [head]
    for row in rows:
        limit, peer = limit_of(rows, row.case), best_peer(rows, row.case)
        numbers = [f"{value:.2f}" for value in (min(row.gb_per_s), median(row.gb_per_s), max(row.gb_per_s))]
        numbers += [f"{median(row.first):.2f}", f"{1e3 * median(row.wall_s):.0f}", f"{median(row.gb_per_cpu_s):.2f}"]
        of_limit = "" if limit is None or limit is row else f"{ratio(row, limit):.2f}"
        ours = row.system.startswith("holdfast")
        of_peer = f"{ratio(row, peer):.2f} ({peer.system})" if ours and peer is not None else ""
        peak = f"{row.peak_rss / 1e6:.0f}" if row.peak_rss else ""
        cells.append([row.case, row.system, *numbers, of_limit, of_peer, peak])
    return columns(cells, right=frozenset({2, 3, 4, 5, 6, 7, 8, 10}))
