"""`holdfast run` as a drop-in for torchrun: scripts that know nothing of Holdfast."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from launcher import SCRIPTS, Launch, command_line

Start = Callable[..., Launch]
PLAIN = str(SCRIPTS / "plain.py")


def test_an_unmodified_torchrun_example_runs_and_restarts(launch: Start) -> None:
    job = launch(
        "--standalone", "--nproc-per-node=2", "--max-restarts=2", str(SCRIPTS / "torchrun_example.py"), "--epochs=4"
    )
    assert job.wait() == 0, job.output()
    output = job.output()
    assert "[rank 0] resuming at epoch 2" in output and "[rank 1] epoch 3" in output
    assert job.report()["restarts"] == 1


@pytest.mark.parametrize(("fail", "verdict"), [("kill", "killed"), ("segv", "crashed"), ("raise", "user_error")])
def test_behaviour_11_and_12_the_first_crash_is_the_cause_and_all_start_again(
    launch: Start, fail: str, verdict: str
) -> None:
    job = launch("--nproc_per_node=3", "--max_restarts=1", PLAIN, "--lr", "1", env={"PLAIN_FAIL": fail})
    assert job.wait() == 0, job.output()
    assert [(fault["verdict"], fault["culprit"]) for fault in job.report()["faults"]] == [(verdict, [1])]
    assert "attempt 1 rank 1 sum 6 args ['--lr', '1']" in job.output()


def test_behaviour_5_the_restart_budget_ends(launch: Start) -> None:
    job = launch("--nproc-per-node=2", "--max-restarts=0", PLAIN, env={"PLAIN_FAIL": "raise"})
    assert job.wait() == 1
    assert "ValueError: no such luck" in job.output()


def test_behaviour_9_finished_ranks_do_not_take_the_store_down(launch: Start) -> None:
    job = launch("--nproc-per-node=3", PLAIN, env={"PLAIN_LEAVE": "1"})
    assert job.wait() == 0, job.output()
    assert "rank 1 done" in job.output() and "rank 2 done" in job.output()


def test_output_goes_to_a_file_for_each_rank(launch: Start, tmp_path: Path) -> None:
    job = launch("--nproc-per-node=2", "--log-dir=logs", "--redirects=3", "--tee=0:1", PLAIN)
    assert job.wait() == 0, job.output()
    assert "rank 1 done" in (tmp_path / "logs/attempt_0/1/stdout.log").read_text()
    assert "[rank 0] rank 0 done" in job.output() and "rank 1 done" not in job.output()


def test_a_program_that_is_no_python_gets_the_environment(launch: Start) -> None:
    job = launch("--nproc-per-node=2", "--", "sh", "-c", "echo rank=$RANK of $WORLD_SIZE at $MASTER_ADDR")
    assert job.wait() == 0, job.output()
    assert "[rank 1] rank=1 of 2 at 127.0.0.1" in job.output()


def test_a_stop_ends_plain_ranks(launch: Start) -> None:
    job = launch("--nproc-per-node=2", "--", "sleep", "600")
    while sum(command_line(pid) == "sleep 600" for pid in job.alive()) < 2:
        assert job.process.poll() is None
    job.signal(signal.SIGTERM)
    assert job.wait() == 75
    assert job.alive() == []
