"""Workers that are started by themselves, and the store in which plain scripts meet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from holdfast import marks, probe

HERE = Path(__file__).parent
ENV = os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1", "HOLDFAST_AGENT_PID": str(os.getpid())}


def test_a_standby_runs_a_script_as_python_would() -> None:
    command = [sys.executable, "-m", "holdfast.worker", str(HERE / "jobs" / "tell.py"), "exit", "5"]
    ended = subprocess.run(command, env=ENV | {"RANK": "0", "WORLD_SIZE": "1"}, capture_output=True, text=True)
    told = json.loads(ended.stdout.splitlines()[0])
    assert ended.returncode == 5
    assert told["main"] and told["argv"][1:] == ["exit", "5"]
    assert told["title"] == "holdfast rank 0/1 tell.py"
    assert ended.stdout.splitlines()[1:] == ["at exit"]


def test_a_worker_needs_a_script() -> None:
    ended = subprocess.run([sys.executable, "-m", "holdfast.worker"], env=ENV, capture_output=True, text=True)
    assert ended.returncode == 2 and "usage" in ended.stderr


def test_a_script_that_is_not_there_is_named() -> None:
    command = [sys.executable, "-m", "holdfast.worker", "/no/such/script.py"]
    ended = subprocess.run(command, env=ENV, capture_output=True, text=True)
    assert ended.returncode == 1 and "/no/such/script.py" in ended.stderr


def test_behaviour_15_the_store_takes_a_port_that_is_free_and_says_which() -> None:
    servers = [
        subprocess.Popen([sys.executable, "-m", "holdfast.store_server"], env=ENV, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ports = []
    for server in servers:
        assert server.stdout is not None
        word, port = server.stdout.readline().split()
        assert word == "port"
        ports.append(int(port))
    assert ports[0] != ports[1]
    stores = [dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=60)) for port in ports]
    stores[0].set("key", "value")
    assert stores[0].get("key") == b"value"
    assert not stores[1].check(["key"])
    for server in servers:
        server.kill()
        server.wait()


def test_a_probe_sees_where_the_main_thread_is() -> None:
    answers: list[tuple[int, str]] = []

    def a_place_to_be_in() -> None:
        asking = threading.Thread(target=lambda: answers.append(probe.look()))
        asking.start()
        asking.join()

    a_place_to_be_in()
    collectives, stack = answers[0]
    assert collectives in (-1, 0)  # no group, or one left by another test
    assert "a_place_to_be_in" in stack
    assert stack.rstrip().splitlines()[-1].strip()


def test_the_numbers_of_marks_and_phases_are_those_of_the_core() -> None:
    text = (HERE.parent.parent / "src" / "telemetry" / "marks.h").read_text()

    def names(enumeration: str) -> list[str]:
        body = text.split(f"enum class {enumeration} : std::uint16_t {{")[1].split("};")[0]
        lines = [line.split("///")[0] for line in body.splitlines()]
        return [word.strip() for word in " ".join(lines).split(",") if word.strip()]

    words = [name for name in vars(marks) if name.isupper() and name != "PHASES"]
    assert [word.title().replace("_", "") for word in words] == names("Mark") + names("Phase")
    assert [getattr(marks, word) for word in words] == [*range(15), *range(8)]
