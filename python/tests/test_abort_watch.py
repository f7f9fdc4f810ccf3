"""The group of a broken epoch is aborted; any other is left alone."""

from __future__ import annotations

import threading

import pytest

from holdfast import abort_watch


class Group:
    def __init__(self) -> None:
        self.aborted = threading.Event()

    def abort(self) -> None:
        self.aborted.set()


class Member:
    def __init__(self) -> None:
        self.broken_epoch = -1

    def broken(self, epoch: int) -> bool:
        return epoch <= self.broken_epoch


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    group = Group()
    monkeypatch.setattr(abort_watch.c10d, "_get_default_group", lambda: group)
    return group


def test_a_broken_group_is_aborted(group: Group) -> None:
    member = Member()
    watch = abort_watch.AbortWatch(member, epoch=3)  # type: ignore[arg-type]
    member.broken_epoch = 2
    assert not group.aborted.wait(0.1)
    member.broken_epoch = 3
    assert group.aborted.wait(60)
    watch.stop()


def test_a_watch_that_is_stopped_aborts_nothing(group: Group) -> None:
    member = Member()
    watch = abort_watch.AbortWatch(member, epoch=3)  # type: ignore[arg-type]
    watch.stop()
    member.broken_epoch = 3
    assert not group.aborted.is_set()
