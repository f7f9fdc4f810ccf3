"""Turns a fresh fork of the fork server into a worker: descriptors, environment, threads, randomness of its own."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from holdfast import process


@dataclass
class Job:
    """What the agent wants forked."""

    argv: list[str]
    env: dict[str, str | None]  # None: not to be set
    cwd: str
    descriptors: dict[str, int]  # out, err, ring

    @classmethod
    def from_request(cls, request: dict[str, Any], descriptors: list[int]) -> Job:
        """Errors: ValueError, KeyError, TypeError where the request is not as documented."""
        names = request.get("fds", [])
        if len(names) != len(descriptors) or not set(names) <= {"out", "err", "ring"}:
            raise ValueError(f"fds names {names}, {len(descriptors)} descriptors came along")
        argv = [str(word) for word in request["argv"]]
        if not argv or argv == ["-m"]:
            raise ValueError("argv names no script")
        env = {str(key): None if value is None else str(value) for key, value in request.get("env", {}).items()}
        return cls(argv, env, str(request.get("cwd", "")), dict(zip(names, descriptors, strict=True)))


def run(job: Job) -> NoReturn:
    """Becomes the worker, runs its script and ends with it."""
    _take_descriptors(job.descriptors)
    for name, value in job.env.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if "ring" in job.descriptors:
        os.environ["HOLDFAST_RING_FD"] = str(job.descriptors["ring"])
    if job.cwd:
        os.chdir(job.cwd)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _wait_for_agent()
    process.set_title(process.worker_title(job.argv))
    _own_randomness()
    _own_threads()
    gc.enable()

    from holdfast import worker

    worker.run(job.argv)


def _take_descriptors(descriptors: dict[str, int]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    for name, number in (("out", 1), ("err", 2)):
        if name in descriptors:
            os.dup2(descriptors[name], number)
            os.close(descriptors[name])


def _wait_for_agent() -> None:
    """Until the agent is this process's parent: the fork between may need a moment to be gone."""
    agent = process.agent_pid()
    between = os.getppid()
    deadline = time.monotonic() + 5
    while agent is not None and os.getppid() != agent:
        if os.getppid() != between or time.monotonic() > deadline:
            os._exit(1)  # somebody else's child: the agent is dead
        time.sleep(0.0002)
    process.die_with_parent(agent)


def _own_randomness() -> None:
    """What a fresh interpreter would have: random streams that no other child shares."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def _own_threads() -> None:
    """The threads OMP_NUM_THREADS asks for: the fork server ran with one."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    wanted = int(text) if text.isdigit() and int(text) > 0 else (os.cpu_count() or 1)
    if "torch" in sys.modules and sys.modules["torch"].get_num_threads() != wanted:
        sys.modules["torch"].set_num_threads(wanted)
