"""The benchmark's launches on a stand-in launcher: struck, recovered, and nothing left alive."""

import os
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from recovery_lib import systems  # noqa: E402
from recovery_lib.bench import Block, run_blocks  # noqa: E402
from recovery_lib.launch import Launch, Stuck  # noqa: E402
from recovery_lib.records import read_processes  # noqa: E402
from recovery_lib.systems import Setting  # noqa: E402

# Forks two ranks that write a step every few milliseconds, and forks a dead one anew where it left off.
STAND_IN = """
import os, sys, time
from holdfast.demo.steplog import StepLog, read_logs
from recovery_lib.records import note_process
out = sys.argv[1]

def rank_forever(rank):
    note_process(out, rank)
    step = max((line.step for line in read_logs(out, 2)[rank]), default=-1) + 1
    log = StepLog(out, rank)
    while True:
        log.ended(step, 1.0)
        step += 1
        time.sleep(0.005)

def start(rank):
    pid = os.fork()
    if pid == 0:
        rank_forever(rank)
    return pid

ranks = {start(rank): rank for rank in (0, 1)}
while True:
    pid, _ = os.wait()
    rank = ranks.pop(pid)
    ranks[start(rank)] = rank
"""


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))

    def command(setting: Setting) -> list[str]:
        return [sys.executable, "-c", STAND_IN, str(setting.folder)]

    monkeypatch.setitem(systems.COMMANDS, "torchrun", command)
    return Setting(ROOT, tmp_path / "run", "sleep50_1mb", ranks=2)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_killed_rank_is_seen_to_come_back(setting: Setting) -> None:
    with Launch("torchrun", setting) as launch:
        launch.advance(5, limit_s=60)
        moment = launch.strike("sigkill", rank=1)
        assert launch.recover(moment, victim=1, limit_s=60) > 0
        assert launch.processes() == {0: 1, 1: 2}


def test_nothing_is_left_alive(setting: Setting) -> None:
    with Launch("torchrun", setting) as launch:
        launch.advance(5, limit_s=60)
    pids = [process.pid for rank in (0, 1) for process in read_processes(setting.folder, rank)]
    end = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    assert len(pids) == 2 and not any(map(alive, pids))


def test_a_system_that_ends_by_itself_is_quoted(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(systems.COMMANDS, "torchrun", lambda _: ["/bin/sh", "-c", "echo it hurts; exit 3"])
    with Launch("torchrun", setting) as launch, pytest.raises(Stuck, match="code 3(.|\n)*it hurts"):
        launch.advance(1, limit_s=60)


def test_blocks_give_rows_and_what_fails_is_kept_with_its_reason(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(systems.COMMANDS, "ft_launcher", lambda _: ["/bin/false"])
    todo = [Block(system, "sigkill", "sleep50_1mb", 3, 2) for system in ("torchrun", "ft_launcher")]
    results = run_blocks(todo, ROOT, tmp_path / "blocks", time.monotonic() + 1e6, say=lambda line: None)
    assert [(row.system, len(row.seconds)) for row in results.rows] == [("torchrun", 3)]
    assert len(results.failures) == 1 and "ft_launcher ended with code 1" in results.failures[0]


def test_blocks_beyond_the_time_are_left_out_and_named(tmp_path: Path) -> None:
    todo = [Block("torchrun", "sigstop", "demo", 2, 4)]
    results = run_blocks(todo, ROOT, tmp_path, time.monotonic() + 30, say=lambda line: None)
    assert results.skipped == ["demo sigstop torchrun"]
