"""A spare that has warmed up is as it was, but faster."""

from __future__ import annotations

import os
import sys

import pytest
import torch
import torch.distributed as dist

from holdfast import warm_up


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    warm_up.first_step()
    seed, state, hook = torch.initial_seed(), torch.get_rng_state(), sys.excepthook
    threads, descriptors = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    warm_up.first_step()
    assert torch.initial_seed() == seed and torch.equal(torch.get_rng_state(), state)
    assert sys.excepthook is hook
    assert not dist.is_initialized()
    assert (len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)
