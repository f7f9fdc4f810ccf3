"""The fork server and its children, as the agent sees them."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_run import ForkServer

JOBS = Path(__file__).parent / "jobs"
TELL = str(JOBS / "tell.py")


class Child:
    """A worker forked by the server, and what it writes."""

    def __init__(self, server: ForkServer, argv: list[str], env: dict[str, str | None], cwd: str = "") -> None:
        self.read_end, write_end = os.pipe()
        self.answer = server.fork(argv, env, write_end, cwd)
        os.close(write_end)
        self.pid = int(self.answer.get("pid", 0))

    def line(self) -> str:
        text = b""
        while not text.endswith(b"\n") and (byte := os.read(self.read_end, 1)):
            text += byte
        return text.decode()

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.line())
        return told

    def rest(self) -> str:
        text = b""
        while data := os.read(self.read_end, 65536):
            text += data
        return text.decode()

    def end(self) -> int:
        """Its exit code."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.read_end)
        return os.waitstatus_to_exitcode(status)


Start = Callable[..., Child]


@pytest.fixture
def start(fork_server: ForkServer) -> Start:
    def run(*arguments: str, cwd: str = "", **env: str | None) -> Child:
        return Child(fork_server, [TELL, *arguments], {"RANK": "2", "WORLD_SIZE": "4", **env}, cwd)

    return run


def test_the_greeting_says_that_there_is_one_thread(fork_server: ForkServer) -> None:
    assert fork_server.greeting == {"ready": True, "threads": 1, "version": "0.1.0", "thread_modules": []}


def test_a_child_is_a_fresh_process_of_its_own(start: Start, tmp_path: Path) -> None:
    child = start("exit", "3", cwd=str(tmp_path), OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS=None)
    told = child.told()
    assert told["argv"] == [TELL, "exit", "3"]
    assert told["name"] == "__main__" and told["main"]
    assert told["file"] == TELL
    assert told["path0"] == str(JOBS)
    assert told["cwd"] == str(tmp_path)
    assert told["pid"] == told["session"] == told["group"] == child.pid
    assert told["parent"] == os.getpid()
    assert told["rank"] == "2" and told["gone"] is None
    assert told["threads"] == 2
    assert told["title"] == "holdfast rank 2/4 tell.py"
    assert told["names"] == ["atexit", "json", "os", "random", "sys", "threading", "time", "torch"]
    assert child.rest() == "at exit\n"
    assert child.end() == 3


def test_no_two_children_draw_the_same_numbers(start: Start) -> None:
    children = [start() for _ in range(2)]
    one, other = (child.told()["draws"] for child in children)
    assert all(a != b for a, b in zip(one, other, strict=True))
    assert [child.end() for child in children] == [0, 0]


def test_an_error_shows_as_the_script_s_own(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    child = start("fail", TORCHELASTIC_ERROR_FILE=str(file))
    child.told()
    text = child.rest()
    assert child.end() == 1
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.count("File ") == 2 and "python/holdfast/" not in text
    assert "ValueError: the script's own mistake" in text
    message = json.loads(file.read_text())["message"]
    assert message["message"] == "ValueError: the script's own mistake"
    assert "in fail" in message["extraInfo"]["py_callstack"]
    assert abs(int(message["extraInfo"]["timestamp"]) - time.time()) < 600


def test_an_exit_with_words_says_them(start: Start) -> None:
    child = start("complain")
    child.told()
    assert "no data here" in child.rest()
    assert child.end() == 1


def test_the_end_waits_for_the_script_s_threads(start: Start) -> None:
    child = start("thread")
    child.told()
    assert child.rest().split("\n")[:2] == ["thread done", "at exit"]
    assert child.end() == 0


def test_a_module_runs_as_with_m(fork_server: ForkServer) -> None:
    child = Child(fork_server, ["-m", "tell", "exit", "4"], {}, str(JOBS))
    told = child.told()
    assert told["argv"] == [TELL, "exit", "4"]
    assert told["name"] == "__main__"
    assert child.rest() == "at exit\n"
    assert child.end() == 4


def test_a_term_signal_ends_a_child(start: Start) -> None:
    child = start("wait")
    child.told()
    os.kill(child.pid, signal.SIGTERM)
    assert child.end() == -signal.SIGTERM


def test_behaviour_4_a_killed_rank_takes_its_children_along(start: Start) -> None:
    child = start("fork")
    child.told()
    grandchild = int(child.line().split()[1])
    pidfd = os.pidfd_open(grandchild)
    os.kill(child.pid, signal.SIGKILL)
    assert child.end() == -signal.SIGKILL
    assert wait_for_end(pidfd, 2)
    os.waitpid(grandchild, 0)


def wait_for_end(pidfd: int, limit_s: float) -> bool:
    ended = bool(select.select([pidfd], [], [], limit_s)[0])
    os.close(pidfd)
    return ended


AGENT = """
import os, sys
sys.path[:0] = {paths!r}
from fake_run import ForkServer
server = ForkServer([])
read_end, write_end = os.pipe()
rank = server.fork([{script!r}, "wait"], {{}}, write_end)["pid"]
os.read(read_end, 1)  # it runs
print(server.process.pid, rank, flush=True)
sys.stdin.read()
"""


def test_behaviour_4_a_killed_agent_takes_server_and_ranks_along() -> None:
    here = Path(__file__).parent
    code = AGENT.format(paths=[str(here), str(here.parent)], script=TELL)
    agent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdout is not None and agent.stdin is not None
    descriptors = [os.pidfd_open(int(pid)) for pid in agent.stdout.readline().split()]
    assert len(descriptors) == 2
    agent.kill()
    agent.wait()
    assert all([wait_for_end(descriptor, 2) for descriptor in descriptors])
    agent.stdout.close()
    agent.stdin.close()


def test_a_bad_request_is_answered_and_the_server_goes_on(fork_server: ForkServer, start: Start) -> None:
    few_descriptors = b'{"fork": 8, "argv": ["a"], "fds": ["out"]}'
    for packet in (b"not json", b"{}", b'{"fork": 8, "argv": []}', few_descriptors, b"[1]"):
        fork_server.socket.send(packet)
        answer = json.loads(fork_server.socket.recv(10_000))
        assert answer["failed"] in (8, None) and answer["why"]
    child = start("exit", "0")
    assert child.told()["rank"] == "2"
    assert child.end() == 0


@pytest.fixture
def other_server() -> Iterator[Callable[..., ForkServer]]:
    servers: list[ForkServer] = []

    def make(preload: list[str], **env: str) -> ForkServer:
        paths = f"{JOBS.parent.parent}:{JOBS.parent}:{JOBS}"
        servers.append(ForkServer(preload, {"PYTHONPATH": paths, **env}))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def test_a_module_that_starts_a_thread_is_named(other_server: Callable[..., ForkServer]) -> None:
    greeting = other_server(["threaded"]).greeting
    assert greeting["ready"] and greeting["threads"] == 2
    assert greeting["thread_modules"] == ["threaded"]


def test_a_module_that_is_not_there_is_named(other_server: Callable[..., ForkServer]) -> None:
    greeting = other_server(["no_such_module"]).greeting
    assert not greeting["ready"]
    assert "no_such_module" in greeting["why"]


def test_an_environment_that_would_start_threads_is_refused(other_server: Callable[..., ForkServer]) -> None:
    greeting = other_server([], OMP_NUM_THREADS="4").greeting
    assert not greeting["ready"] and "OMP_NUM_THREADS" in greeting["why"]


def test_the_server_ends_when_its_socket_is_closed(other_server: Callable[..., ForkServer]) -> None:
    server = other_server([])
    assert server.close() == 0


def test_descriptors_are_not_kept(fork_server: ForkServer, start: Start) -> None:
    def count() -> int:
        return len(os.listdir(f"/proc/{fork_server.process.pid}/fd"))

    before = count()
    for _ in range(3):
        child = start("quiet")
        assert child.end() == 0
    assert count() == before


def test_the_ring_is_found_by_its_number(fork_server: ForkServer, tmp_path: Path) -> None:
    ring = os.memfd_create("ring")
    os.write(ring, b"a ring")
    script = tmp_path / "read_ring.py"
    script.write_text("import os\nprint(os.pread(int(os.environ['HOLDFAST_RING_FD']), 6, 0).decode(), flush=True)\n")
    read_end, write_end = os.pipe()
    request = {"fork": 99, "argv": [str(script)], "env": {}, "cwd": "", "fds": ["out", "err", "ring"]}
    socket.send_fds(fork_server.socket, [json.dumps(request).encode()], [write_end, write_end, ring])
    answer = json.loads(fork_server.socket.recv(10_000))
    os.close(write_end)
    os.close(ring)
    with open(read_end) as out:
        assert out.read() == "a ring\n"
    os.waitpid(answer["pid"], 0)
