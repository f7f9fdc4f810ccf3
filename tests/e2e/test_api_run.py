"""Scripts that use the Python API, through real faults."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from launcher import SCRIPTS, Launch, command_line, run

Start = Callable[..., Launch]
COUNT = str(SCRIPTS / "count.py")


def weights(launch: Launch) -> set[str]:
    return set(re.findall(r"weights ([0-9a-f]{64})", launch.output()))


def attached(launch: Launch) -> dict[int, list[int]]:
    """Pids that each rank had, in order."""
    found: dict[int, list[int]] = {}
    for rank, pid in re.findall(r"rank (\d+) pid (\d+) attached", launch.output()):
        found.setdefault(int(rank), []).append(int(pid))
    return found


@pytest.fixture(scope="module")
def fault_free(tmp_path_factory: pytest.TempPathFactory) -> str:
    launch = run(tmp_path_factory.mktemp("fault_free"), "--nproc-per-node=3", COUNT)
    assert launch.process.returncode == 0, launch.output()
    (digest,) = weights(launch)
    return digest


@pytest.mark.parametrize("rank", [0, 1])
def test_behaviour_7_and_8_a_killed_rank_is_replaced_in_place(launch: Start, fault_free: str, rank: int) -> None:
    job = launch("--nproc-per-node=3", COUNT)
    job.wait_for("step 10 done")
    os.kill(job.rank_pid(rank), signal.SIGKILL)
    assert job.wait() == 0, job.output()
    assert weights(job) == {fault_free}
    pids = attached(job)
    assert [len(pids[each]) for each in range(3)] == [2 if each == rank else 1 for each in range(3)]
    report = job.report()
    (fault,) = report["faults"]
    assert (fault["verdict"], fault["culprit"], fault["in_place"]) == ("killed", [rank], True)
    assert report["steps_lost"] == 0 and report["steps"] == 40 and report["steps_redone"] <= 1
    assert sum(report["goodput"].values()) == pytest.approx(report["wall_s"], rel=1e-9)


def test_behaviour_24_a_stopped_rank_is_named_and_replaced(launch: Start, fault_free: str) -> None:
    job = launch("--nproc-per-node=3", COUNT)
    job.wait_for("step 10 done")
    os.kill(job.rank_pid(2), signal.SIGSTOP)
    assert job.wait() == 0, job.output()
    assert weights(job) == {fault_free}
    assert [(fault["verdict"], fault["culprit"]) for fault in job.report()["faults"]] == [("stopped", [2])]


@pytest.mark.parametrize(("kind", "verdict"), [("sleep", "hung"), ("gil", "gil_held")])
def test_behaviour_26_the_rank_that_has_not_arrived_is_named(
    launch: Start, tmp_path: Path, fault_free: str, kind: str, verdict: str
) -> None:
    (tmp_path / "faults.json").write_text(f'{{"faults": [{{"kind": "{kind}", "step": 15, "rank": 1}}]}}')
    job = launch("--nproc-per-node=3", "--faults=faults.json", COUNT)
    assert job.wait() == 0, job.output()
    assert weights(job) == {fault_free}
    assert [(fault["verdict"], fault["culprit"]) for fault in job.report()["faults"]] == [(verdict, [1])]


def test_a_collective_after_the_optimizer_is_undone_and_run_again(launch: Start, tmp_path: Path) -> None:
    plain = run(tmp_path, "--nproc-per-node=3", COUNT, env={"COUNT_AFTER": "1"})
    job = launch("--nproc-per-node=3", COUNT, env={"COUNT_AFTER": "1"})
    job.wait_for("step 5 done")
    os.kill(job.rank_pid(1), signal.SIGKILL)
    job.wait_for("step 20 done")
    os.kill(job.rank_pid(0), signal.SIGKILL)
    assert job.wait() == 0, job.output()
    assert weights(job) == weights(plain) != set()


def test_all_ranks_killed_start_again_from_the_newest_checkpoint(
    launch: Start, tmp_path: Path, fault_free: str
) -> None:
    job = launch("--nproc-per-node=3", f"--ckpt-dir={tmp_path / 'ckpt'}", "--ckpt-every-steps=5", COUNT)
    job.wait_for("checkpoint of step 20 committed")
    for pid in [job.rank_pid(rank) for rank in range(3)]:
        os.kill(pid, signal.SIGKILL)
    assert job.wait() == 0, job.output()
    assert weights(job) == {fault_free}
    report = job.report()
    # None where the first one's replacement is there before the last one's death is heard of: it counts as a survivor.
    assert report["restarts"] <= 1 and report["steps_lost"] == 0 and report["steps_redone"] <= 10
    assert "resuming from" in job.output()


def test_behaviour_10_a_stop_is_agreed_at_a_step_and_leaves_a_checkpoint(
    launch: Start, tmp_path: Path, fault_free: str
) -> None:
    words = ("--nproc-per-node=3", f"--ckpt-dir={tmp_path / 'ckpt'}", COUNT)
    job = launch(*words)
    job.wait_for("step 10 done")
    job.signal(signal.SIGTERM)
    assert job.wait() == 75, job.output()
    assert re.search(r"checkpoint of step \d+ committed", job.output())
    assert weights(job) == set()
    again = launch(*words)
    assert again.wait() == 0, again.output()
    assert "resuming from" in again.output()
    assert weights(again) == {fault_free}


def test_behaviour_10_the_grace_ends_a_stop_that_nobody_heeds(launch: Start) -> None:
    job = launch("--nproc-per-node=2", "--grace=1s", COUNT, env={"COUNT_SLEEP": "600"})
    job.wait_for("attached", times=2)
    job.signal(signal.SIGUSR1)
    assert job.wait() == 75
    assert job.alive() == []


def test_an_error_of_the_script_comes_first_and_is_not_retried_for_ever(launch: Start) -> None:
    job = launch("--nproc-per-node=2", COUNT, env={"COUNT_RAISE": "4"})
    assert job.wait() == 1
    output = job.output()
    assert output.index("ValueError: bad batch") < output.index("rank 1 user_error")
    assert 1 <= len([fault for fault in job.report()["faults"] if fault["verdict"] == "user_error"]) <= 2


def test_behaviour_14_a_full_disk_costs_a_checkpoint_and_no_step(
    launch: Start, tmp_path: Path, fault_free: str
) -> None:
    (tmp_path / "faults.json").write_text('{"faults": [{"kind": "disk_full", "step": 8, "rank": 1}]}')
    words = ("--ckpt-every-steps=5", f"--ckpt-dir={tmp_path / 'ckpt'}", "--faults=faults.json")
    job = launch("--nproc-per-node=3", *words, COUNT)
    assert job.wait() == 0, job.output()
    assert weights(job) == {fault_free}
    report = job.report()
    assert [(fault["verdict"], fault["culprit"]) for fault in report["faults"]] == [("checkpoint_failed", [1])]
    assert report["epochs"] == 1


def test_each_process_shows_its_rank(launch: Start) -> None:
    job = launch("--nproc-per-node=2", COUNT)
    job.wait_for("step 3 done")
    titles = {command_line(pid) for pid in job.alive()}
    assert {"holdfast rank 0/2 count.py", "holdfast rank 1/2 count.py"} <= titles


def test_behaviour_15_two_runs_on_one_host_never_meet(launch: Start, tmp_path: Path, fault_free: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first = launch("--nproc-per-node=3", COUNT)
    second = run(other, "--nproc-per-node=3", COUNT)
    assert first.wait() == 0 and second.process.returncode == 0
    assert weights(first) == weights(second) == {fault_free}


def test_standby_processes_serve_where_forking_cannot(launch: Start, fault_free: str) -> None:
    job = launch("--nproc-per-node=3", "--spawn=standby", COUNT)
    job.wait_for("step 10 done")
    os.kill(job.rank_pid(1), signal.SIGKILL)
    assert job.wait() == 0, job.output()
    assert weights(job) == {fault_free}


def test_a_module_that_starts_threads_is_noticed(launch: Start, tmp_path: Path) -> None:
    (tmp_path / "busy_module.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    job = launch("--nproc-per-node=2", "--preload=busy_module", COUNT, env={"PYTHONPATH": str(tmp_path)})
    assert job.wait() == 0, job.output()
    assert "standby" in job.output()
