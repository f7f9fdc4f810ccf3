"""bench/checkpoint's judgement: which ratio is taken of what, and what is promised. Then all of it once, in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from checkpoint_lib import table  # noqa: E402
from check import check_lines  # noqa: E402
from checkpoint_lib.promises import checks  # noqa: E402
from checkpoint_lib.rows import SAVE, STEP_TIME, Row, quickest_limit, ratio  # noqa: E402


def saved(system: str, *blocked: float) -> Row:
    """A round for each; the total is ten times as much."""
    row = Row(SAVE, system)
    for seconds in blocked:
        runs = [{"blocked": 9.0, "total": 99.0, "cpu": 9.0}]
        runs += [{"blocked": seconds, "total": 10 * seconds, "cpu": 2 * seconds}] * 3
        row.add({"bytes": 10**9, "runs": runs}, ranks=2)
    return row


def trained(system: str, *slowdowns: float) -> Row:
    row = Row(STEP_TIME, system)
    for slowdown in slowdowns:
        run = {"without": [0.1] * 5, "writing": [0.1 * slowdown] * 4 + [9.0], "blocked": 0.2, "total": 1.0}
        row.add({"runs": [run, run | {"writing": []}]}, ranks=2)
    return row


def test_a_row_is_of_the_steady_saves_and_shows_the_first_apart() -> None:
    made = saved("holdfast", 1, 2, 4).json()
    assert made["blocked"] == {"min": 1, "median": 2, "max": 4} and made["total"]["median"] == 20
    assert (made["first_blocked"], made["first_total"]) == (9, 99)
    assert made["gb_per_cpu_s"] == pytest.approx(0.5)  # two ranks' bytes


def test_ratios_are_of_one_round() -> None:
    assert ratio(saved("a", 1, 10, 100), saved("b", 2, 10, 50), "blocked") == pytest.approx(1)


def test_a_slowdown_is_of_the_median_step_and_shows_the_mean_apart() -> None:
    made = trained("holdfast", 1.02).json()
    assert made["slowdown"]["median"] == pytest.approx(1.02)
    assert made["mean_slowdown"] == pytest.approx((4 * 0.102 + 9) / 5 / 0.1)


def test_no_step_while_writing_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="no step came while a save was being written"):
        Row(STEP_TIME, "holdfast").add({"runs": [{"without": [0.1], "writing": []}]}, ranks=2)


def test_promises_are_held_against_the_quickest_copy_and_dcp() -> None:
    rows = [saved("limit: memcpy_1", 1.0), saved("limit: memcpy_4", 0.5), saved("holdfast", 0.59)]
    rows += [saved("dcp_async", 2.9), saved("dcp_async_reused", 1.2), trained("holdfast", 1.04)]
    assert quickest_limit(rows) is rows[1]
    found = {check.what: check.holds for check in checks(rows)}
    assert found == {
        "save: blocked, of limit: memcpy_4": True,
        "save: blocked, of dcp_async": False,
        "save: total, of dcp_async_reused": True,
        "step_time: while writing, of without": True,
    }
    assert any("MISSED" in line for line in check_lines(checks(rows)))
    assert any("x 1.040" in line for line in table.steps(rows))
    assert any(line.split()[:2] == ["holdfast", "590"] for line in table.saves(rows))


def test_it_runs_and_writes_its_rows(tmp_path: Path) -> None:
    words = [str(ROOT / "bench" / "checkpoint"), "--gb", "0.02", "--rounds", "1", "--saves", "2"]
    words += ["--folder", str(tmp_path), "--json", str(tmp_path / "rows"), "--case", "save"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode in (0, 1) and "FAILED" not in done.stdout, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads((tmp_path / "rows").read_text())
    assert {"holdfast", "dcp_async", "dcp_async_reused", "limit: memcpy_1"} <= {row["system"] for row in rows}
    assert all(0 < row["blocked"]["min"] <= row["total"]["max"] for row in rows)
    assert [each.name for each in tmp_path.iterdir()] == ["rows"]


def test_steps_are_timed_while_a_save_is_written(tmp_path: Path) -> None:
    words = [str(ROOT / "bench" / "checkpoint"), "--gb", "0.2", "--rounds", "1", "--saves", "3"]
    words += ["--folder", str(tmp_path), "--json", str(tmp_path / "rows"), "--case", "step_time", "--systems", "dcp"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "rows").read_text())
    assert row["case"] == "step_time" and row["slowdown"]["median"] > 0 and row["step_s"] > 0
