"""A call that blocks can be left."""

from __future__ import annotations

import threading

import pytest

from holdfast import interruptible


def test_a_call_that_ends_is_waited_for() -> None:
    done = []
    assert interruptible.run(lambda: done.append(1), lambda: False)
    assert done == [1]


def test_its_error_is_raised_here() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        interruptible.run(fail, lambda: False)


def test_a_call_that_blocks_is_left_when_it_is_given_up() -> None:
    release, ended = threading.Event(), threading.Event()

    def block() -> None:
        release.wait()
        ended.set()
        raise ValueError("nobody hears this")

    assert not interruptible.run(block, lambda: True)
    assert not ended.is_set()
    release.set()
    assert ended.wait(60)
