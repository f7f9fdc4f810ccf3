"""bench/store's judgement: which ratio is taken of what, and what is promised. Then all of it once, in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from check import check_lines  # noqa: E402
from store_lib import model, table  # noqa: E402
from store_lib.promises import checks  # noqa: E402
from store_lib.rows import Row, best_peer, limit_of, ratio  # noqa: E402

MIB = 1 << 20


def row(case: str, system: str, *speeds: float, above: int = 0) -> Row:
    made = Row(case, system)
    for speed in speeds:
        runs = [{"wall": 9.0, "cpu": 9.0}] + [{"wall": 1 / speed, "cpu": 2 / speed}] * 3
        made.add({"runs": runs, "peak_rss": above, "peak_above": above}, 10**9)
    return made


def test_a_row_is_of_the_steady_runs_and_shows_the_first_apart() -> None:
    made = row("load_warm", "holdfast", 8, 10, 12).json()
    assert (made["min"], made["median"], made["max"]) == pytest.approx((8, 10, 12))
    assert made["gb_per_cpu_s"] == pytest.approx(5) and made["first"] == pytest.approx(1 / 9)


def test_ratios_are_of_one_round() -> None:
    assert ratio(row("c", "a", 1, 10, 100), row("c", "b", 2, 10, 50)) == pytest.approx(1)


def test_the_limit_is_the_quickest_but_copies_in_memory_and_peers_are_not_ours() -> None:
    rows = [row("c", "limit: memcpy_2", 20), row("c", "limit: arena_1", 9), row("c", "limit: arena_2", 10)]
    rows += [row("c", "holdfast", 11), row("c", "runai", 3), row("c", "tensorizer_2", 4), row("other", "runai", 99)]
    limit, peer = limit_of(rows, "c"), best_peer(rows, "c")
    assert limit is rows[2] and peer is rows[5]


def test_promises_are_held_against_the_best_of_a_peer() -> None:
    rows = [row("load_warm", "limit: arena_1", 10), row("load_warm", "tensorizer_2", 3)]
    rows += [row("load_warm", "tensorizer_4", 4)]
    rows += [row("load_warm", "holdfast", 8.6, above=1000 * MIB), row("load_warm", "holdfast_unchecked", 9.4)]
    found = {(check.what, check.holds) for check in checks(rows, 900 * MIB)}
    assert ("load_warm: holdfast_unchecked, GB/s of limit: arena_1", False) in found
    assert ("load_warm: holdfast, GB/s of limit: arena_1", True) in found
    assert ("load_warm: holdfast_unchecked, GB/s of tensorizer_4", False) in found
    assert ("load_warm: holdfast, GB/s of tensorizer_4", True) in found
    assert ("load_warm: holdfast, memory above the model", False) in found
    assert any("MISSED" in line for line in check_lines(checks(rows, 900 * MIB)))
    assert any(line.split()[-3:] == ["2.15", "(tensorizer_4)", "1049"] for line in table.speeds(rows))


def test_a_remote_load_is_held_against_curl_and_tensorizer() -> None:
    rows = [row("load_s3", "limit: curl_1x8", 2), row("load_s3", "limit: curl_2x4", 2.2)]
    rows += [row("load_s3", "tensorizer_2", 1), row("load_s3", "runai", 9), row("load_s3", "holdfast", 1.99)]
    held = {check.what: check.holds for check in checks(rows, 10**9)}
    assert held["load_s3: holdfast, GB/s of limit: curl_2x4"]
    assert not held["load_s3: holdfast, GB/s of tensorizer_2"]


def test_the_first_tensor_is_held_against_a_time() -> None:
    rows = [row("first_tensor", "holdfast", 1 / 0.049), row("first_tensor", "holdfast_small", 1 / 0.051)]
    rows += [row("first_tensor", "tensorizer", 1)]
    assert [check.holds for check in checks(rows, 10**9)] == [True, False]


def test_the_model_has_a_llamas_tensors_and_size() -> None:
    shapes = model.shapes(2.0)
    elements = sum(shape[0] * (shape[1] if len(shape) == 2 else 1) for shape in shapes.values())
    assert len(shapes) == 291 and 1.9e9 < 2 * elements < 2.2e9


def bench(tmp_path: Path, *words: str) -> list[dict[str, Any]]:
    """Its rows, of a run that is small and leaves nothing behind."""
    small = ["--gb", "0.01", "--rounds", "1", "--runs", "2", "--folder", str(tmp_path)]
    program = [str(ROOT / "bench" / "store"), *small, *words, "--systems", "holdfast"]
    done = subprocess.run([*program, "--json", str(tmp_path / "rows")], capture_output=True, text=True)
    assert done.returncode in (0, 1) and "FAILED" not in done.stdout, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads((tmp_path / "rows").read_text())
    assert all(0 < row["min"] <= row["median"] <= row["max"] for row in rows)
    assert [each.name for each in tmp_path.iterdir()] == ["rows"]
    return rows


def test_it_runs_and_writes_its_rows(tmp_path: Path) -> None:
    rows = bench(tmp_path, "--case", "load_warm", "--case", "save_durable")
    assert {row["system"] for row in rows if row["case"] == "save_durable"} == {"limit: direct_write_8", "holdfast"}


def test_it_loads_from_servers_that_it_starts(tmp_path: Path) -> None:
    rows = bench(tmp_path, "--case", "load_http", "--case", "load_s3", "--case", "first_tensor")
    loaded = {"limit: curl_1x8", "limit: curl_2x4", "holdfast", "holdfast_unchecked"}
    for case in ("load_http", "load_s3"):
        assert {row["system"] for row in rows if row["case"] == case} == loaded
    assert {row["system"] for row in rows if row["case"] == "first_tensor"} == {"holdfast", "holdfast_small"}
