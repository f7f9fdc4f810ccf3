"""One fork server for all tests that run ranks: importing torch is what takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
sys.path.insert(0, str(Path(__file__).parent))

from fake_run import FakeRun, ForkServer, Result  # noqa: E402

JOBS = Path(__file__).parent / "jobs"


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def play(fork_server: ForkServer, tmp_path: Path) -> Callable[..., Result]:
    """play(["train.py", ...], world_size, kills={...}) runs a job of tests/jobs to its end."""

    def run(argv: list[str], world_size: int = 3, **options: Any) -> Result:
        return FakeRun(fork_server, tmp_path, [str(JOBS / argv[0]), *argv[1:]], world_size, **options).play()

    return run
