"""The recovery benchmark's pure parts: from step logs and reports to times, blame and promises."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from holdfast.demo.steplog import Line  # noqa: E402
from check import Check  # noqa: E402
from recovery_lib import bench, limits, measure, records, table  # noqa: E402
from recovery_lib.measure import Row  # noqa: E402
from recovery_lib.systems import COMMANDS, SYSTEMS, Setting  # noqa: E402

MS = 1_000_000


def log(*pairs: tuple[int, int]) -> list[Line]:
    """(step, milliseconds) pairs as a rank's log."""
    return [Line(step, at * MS, "0x1p+0") for step, at in pairs]


def test_recovery_ends_when_the_last_rank_has_ended_the_next_step() -> None:
    logs = {0: log((0, 50), (1, 100), (2, 170)), 1: log((0, 50), (1, 101), (2, 190))}
    assert measure.recovery_s(logs, 120 * MS, victim=1) == pytest.approx(0.07)


def test_steps_computed_again_from_a_checkpoint_do_not_count() -> None:
    logs = {0: log((0, 50), (1, 100), (0, 600), (1, 650), (2, 700)), 1: log((0, 50), (1, 100), (0, 600), (1, 650))}
    assert measure.recovery_s(logs, 120 * MS, victim=1) is None
    logs[1] += log((2, 710))
    assert measure.recovery_s(logs, 120 * MS, victim=1) == pytest.approx(0.59)


def test_a_survivor_may_have_ended_the_step_before_the_fault() -> None:
    logs = {0: log((0, 50), (1, 100)), 1: log((0, 50), (1, 300))}
    assert measure.recovery_s(logs, 150 * MS, victim=1) == pytest.approx(0.15)


def test_a_step_that_the_victim_had_ended_does_not_count() -> None:
    logs = {0: log((0, 50), (1, 160)), 1: log((0, 50), (1, 100))}
    assert measure.recovery_s(logs, 150 * MS, victim=1) is None
    logs = {0: logs[0] + log((2, 400)), 1: logs[1] + log((2, 450))}
    assert measure.recovery_s(logs, 150 * MS, victim=1) == pytest.approx(0.3)


def test_no_step_is_ended_by_all_while_a_rank_has_none() -> None:
    assert measure.ended_by_all({0: log((0, 1)), 1: []}) == -1


def test_faults_strike_at_every_part_of_a_step() -> None:
    assert measure.step_s({0: log((0, 50), (1, 100), (2, 160), (3, 210))}) == pytest.approx(0.05)
    assert measure.step_s({0: log((0, 50))}) == 0
    phases = sorted(bench.phase(run) for run in range(50))
    assert all(0 <= value < 1 for value in phases)
    assert max(b - a for a, b in zip(phases, phases[1:], strict=False)) < 0.05


def test_restarts_beyond_the_victims_are_counted() -> None:
    assert measure.restarts_beyond({0: 1, 1: 2, 2: 1}, {0: 1, 1: 2, 2: 1}) == 0
    assert measure.restarts_beyond({0: 2, 1: 3, 2: 1}, {0: 1, 1: 2, 2: 1}) == 2


def test_wrong_missing_and_invented_culprits_are_counted() -> None:
    right = [{"culprit": [3], "verdict": "killed"}, {"culprit": [0], "verdict": "killed"}]
    words = ["killed", "killed"]
    assert measure.wrong_culprits(right, [3, 0], words) == 0
    assert measure.wrong_culprits(right, [3, 1], words) == 1
    assert measure.wrong_culprits(right[:1], [3, 0], words) == 1
    assert measure.wrong_culprits([*right, {"culprit": [2], "verdict": "hung"}], [3, 0], words) == 1
    assert measure.wrong_culprits([{"culprit": [3], "verdict": "hung"}], [3], ["killed"]) == 1


def test_a_verdict_came_as_long_before_the_next_step_as_the_report_says() -> None:
    records: list[dict[str, float | None]] = [{"next_step_s": 0.25}, {"next_step_s": None}]
    assert measure.detected_s(records, [0.5, 0.5]) == (0.25,)
    assert measure.detected_s(records[:1], [0.5, 0.5]) == ()


def test_differences_are_in_microseconds_and_pairwise() -> None:
    assert measure.median_difference_us([2000, 9000, 4000], [1000, 1000, 2000]) == 2.0
    assert measure.mean_difference_us([2000, 4000], [1000, 1000]) == 2.0


def test_a_row_has_the_promised_keys() -> None:
    assert Row("holdfast", "sigkill", "demo", (0.3, 0.1, 0.2)).json() == {
        "system": "holdfast",
        "fault": "sigkill",
        "case": "demo",
        "runs": 3,
        "min_s": 0.1,
        "median_s": 0.2,
        "max_s": 0.3,
    }


def rows(kill: float, torchrun: float = 5.0, stop: float = 0.5) -> list[Row]:
    return [
        Row("holdfast", "sigkill", "sleep50_1mb", (kill,) * 5),
        Row("torchrun", "sigkill", "sleep50_1mb", (torchrun,) * 5),
        Row("holdfast", "sigstop", "sleep50_1mb", (0.2, stop)),
    ]


def missed(checks: list[Check]) -> list[str]:
    return [check.what for check in checks if not check.holds]


def test_promises_on_times_hold_or_are_named() -> None:
    assert missed(limits.time_checks(rows(0.1), "sleep50_1mb")) == []
    assert missed(limits.time_checks(rows(0.2), "sleep50_1mb")) == ["SIGKILL to next step, median"]
    assert missed(limits.time_checks(rows(0.1, torchrun=1.9), "sleep50_1mb")) == [
        "times faster than torchrun after SIGKILL"
    ]
    assert missed(limits.time_checks(rows(0.1, stop=1.1), "sleep50_1mb")) == ["sigstop to next step, max"]


def test_promises_on_names_hold_or_are_named() -> None:
    good = limits.Naming("sigstop", "demo", 5, 0, (0.2, 0.4), 0)
    late = limits.Naming("gil", "sleep50_1mb", 5, 0, (0.2, 0.6), 0)
    slower = limits.Naming("gil", "demo", 5, 0, (0.2, 0.6), 0)
    wrong = limits.Naming("sigkill", "fifty", 50, 1, (), 2)
    assert missed(limits.naming_checks([good, slower], "sleep50_1mb")) == []
    assert missed(limits.naming_checks([late], "sleep50_1mb")) == ["sleep50_1mb gil, 5 times: named after, max"]
    assert missed(limits.naming_checks([wrong], "sleep50_1mb")) == [
        "fifty sigkill, 50 times: wrong culprits",
        "fifty sigkill, 50 times: second restarts",
    ]
    assert missed([limits.cost_check(51.0)]) == ["marks, a step"]


def test_the_table_shows_how_many_times_longer_the_peer_took() -> None:
    assert any("torchrun 50.0" in line for line in table.times(rows(0.1)))


def test_the_promised_comparisons_are_all_among_the_blocks() -> None:
    todo = bench.blocks(False, 4, SYSTEMS, ["sleep50_1mb", "demo"], ["sigkill", "sigstop", "gil"])
    have = {(block.system, block.fault, block.case): block.runs for block in todo if not block.label}
    for case in ("sleep50_1mb", "demo"):
        for system in SYSTEMS:
            assert have[(system, "sigkill", case)] >= 5
            assert have[(system, "sigstop", case)] >= 2
        assert have[("holdfast", "gil", case)] >= 5
    assert [block.runs for block in todo if block.label == "fifty"] == [50]
    assert sum(block.guess_s() for block in todo) < 20 * 60


def test_fifty_victims_have_rank_0_among_them() -> None:
    assert {bench.victim(run, 4) for run in range(50)} == {0, 1, 2, 3}


def test_every_system_is_given_the_same_case_and_ranks(tmp_path: Path) -> None:
    for command in COMMANDS.values():
        words = command(Setting(tmp_path, tmp_path / "x", "demo", ranks=3))
        assert "--nproc-per-node=3" in words and "--case=demo" in words


def test_processes_and_faults_are_read_back_whole_lines_only(tmp_path: Path) -> None:
    records.note_process(tmp_path, 2)
    records.note_fault(tmp_path)
    with open(records.pids_path(tmp_path, 2), "a") as file:
        file.write("123")
    assert len(records.read_processes(tmp_path, 2)) == 1
    assert len(records.read_faults(tmp_path)) == 1
    assert records.read_processes(tmp_path, 0) == []


def test_without_a_build_it_says_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "a folder" / "bench"
    place.mkdir(parents=True)
    script = place / "recovery"
    script.write_bytes((ROOT / "bench" / "recovery").read_bytes())
    run = subprocess.run(["/bin/sh", str(script)], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "make build" in run.stderr
