"""The demo's words for people: a line a fault, then the run's accounts. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.demo.judge import Judged, bucket_gap
from holdfast.demo.schedule import Fault


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"


def _ranks(ranks: Sequence[int]) -> str:
    return ",".join(str(rank) for rank in ranks) or "-"


def columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as lines with aligned columns; the first row is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return lines


def fault_table(judged: Sequence[Judged]) -> list[str]:
    """Each fault with its verdict, culprit and times."""
    rows = [["step", "fault", "ranks", "verdict", "culprit", "detected", "next step", ""]]
    for one in judged:
        mark = "ok" if one.found and one.named else ("MISNAMED" if one.found else "MISSED")
        rows.append(
            [
                str(one.fault.step),
                one.fault.title,
                _ranks(one.fault.ranks),
                one.verdict,
                _ranks(one.culprit),
                _seconds(one.detect_s),
                _seconds(one.next_step_s),
                mark,
            ]
        )
    return columns(rows, right=frozenset({0, 5, 6}))


def accounts(report: Mapping[str, Any], steps: int) -> list[str]:
    """ETTR, where every second went, and the steps."""
    wall = float(report["wall_s"])
    buckets = sorted(report["goodput"].items(), key=lambda item: -float(item[1]))
    parts = ", ".join(f"{name} {float(value):.2f}" for name, value in buckets)
    exact = "sum to it exactly" if bucket_gap(report) < 1e-9 else f"miss it by {bucket_gap(report):.2g}"
    return [
        f"wall clock {wall:.2f} s, ETTR {float(report['ettr']):.3f}",
        f"goodput buckets (s): {parts}; they {exact}",
        f"steps: {steps} wanted, {report['steps_lost']} lost, {report['steps_redone']} computed again",
    ]


def weights(hash_fault_free: str, hash_faulted: str) -> list[str]:
    same = "yes" if hash_fault_free and hash_fault_free == hash_faulted else "no"
    return [
        f"final weights identical: {same}",
        f"  without faults  {hash_fault_free or '(none)'}",
        f"  with faults     {hash_faulted or '(none)'}",
    ]


def progress(what: str, step: int, steps: int, seconds: float, struck: Sequence[Fault]) -> str:
    """One line that says how far a run is."""
    last = f", last fault: {struck[-1].title} ({len(struck)} so far)" if struck else ""
    return f"{what}: step {step + 1}/{steps}, {seconds:.0f} s{last}"
