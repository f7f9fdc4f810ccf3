"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from launcher import Launch, start  # noqa: E402


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Launch]]:
    """`launch(words...)` starts `holdfast run` in the test's folder; whatever is left of it is ended with the test."""
    launches: list[Launch] = []

    def begin(*words: str, env: dict[str, str] | None = None) -> Launch:
        launches.append(start(tmp_path, *words, env=env))
        return launches[-1]

    yield begin
    for each in launches:
        each.end()
