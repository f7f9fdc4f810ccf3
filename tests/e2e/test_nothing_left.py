"""Whatever dies, nothing that was started stays alive, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

from launcher import SCRIPTS, Launch, command_line

Start = Callable[..., Launch]
LOADER = str(SCRIPTS / "loader.py")


def all_gone_within_2_s(job: Launch) -> bool:
    deadline = time.monotonic() + 2
    while job.alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    return job.alive() == []


def agent_pid(job: Launch) -> int:
    children = [int(pid) for pid in open(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read().split()]
    (agent,) = [pid for pid in children if "holdfast" in command_line(pid)]
    return agent


def test_behaviour_4_the_launcher_killed_leaves_no_worker_after_2_s(launch: Start) -> None:
    job = launch("--nproc-per-node=2", LOADER)
    job.wait_for("step 3 done")
    assert len(job.alive()) >= 8  # front, agent, fork server, 2 ranks with 2 loaders each
    job.process.kill()
    job.process.wait()
    assert all_gone_within_2_s(job)


def test_behaviour_1_the_agent_killed_leaves_no_worker_after_2_s(launch: Start) -> None:
    job = launch("--nproc-per-node=2", LOADER)
    job.wait_for("step 3 done")
    os.kill(agent_pid(job), signal.SIGKILL)
    assert all_gone_within_2_s(job)
    assert job.wait() == 1


def test_behaviour_3_only_what_was_started_is_ended(launch: Start) -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        job = launch("--nproc-per-node=2", LOADER)
        job.wait_for("step 3 done")
        job.signal(signal.SIGINT)
        assert job.wait() == 75
        assert job.alive() == []
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_killed_ranks_data_loading_workers_go_with_it(launch: Start) -> None:
    job = launch("--nproc-per-node=2", LOADER)
    job.wait_for("step 3 done")
    victim = job.rank_pid(1)
    loaders = [int(pid) for pid in open(f"/proc/{victim}/task/{victim}/children").read().split()]
    assert len(loaders) == 2
    os.kill(victim, signal.SIGKILL)
    job.wait_for("recovered")
    assert not set(loaders) & set(job.alive())


def test_behaviour_15_no_port_and_no_shared_memory_stays(launch: Start) -> None:
    before = set(os.listdir("/dev/shm")), set(os.listdir("/tmp"))
    job = launch("--nproc-per-node=2", LOADER)
    job.wait_for("step 3 done")
    job.signal(signal.SIGTERM)
    assert job.wait() == 75
    assert {name for name in set(os.listdir("/dev/shm")) - before[0] if "holdfast" in name} == set()
    new = set(os.listdir("/tmp")) - before[1]
    assert {name for name in new if name.startswith("holdfast-") and _ours(name)} == set()


def _ours(name: str) -> bool:
    return os.path.isdir(f"/tmp/{name}") and bool(os.listdir(f"/tmp/{name}")) and "demo" not in name
