"""The same numbers for the same step, other numbers for any other."""

from __future__ import annotations

import random

import numpy
import pytest
import torch

from holdfast import random_state
from holdfast.random_state import Streams, mix, seed_all


def draw() -> tuple[float, float, float]:
    return torch.rand(1).item(), random.random(), float(numpy.random.rand())


def test_a_seed_fixes_all_streams() -> None:
    seed_all(5)
    first = draw()
    seed_all(5)
    assert draw() == first
    seed_all(6)
    assert all(a != b for a, b in zip(draw(), first, strict=True))


def test_mixing_tells_order_and_length_apart() -> None:
    numbers = {mix(1, 2), mix(2, 1), mix(1, 2, 0), mix(1), mix(0, 1), mix(-1), mix(2**64 - 2)}
    assert len(numbers) == 7
    assert all(0 <= number < 2**63 for number in numbers)


@pytest.fixture
def unseeded(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.seed()
    monkeypatch.setattr(random_state, "_process_seed", torch.initial_seed())


def test_a_replacement_has_the_streams_of_the_rank_it_replaces(unseeded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Streams(hint=3, rank=1)
    torch.seed()  # another process
    monkeypatch.setattr(random_state, "_process_seed", torch.initial_seed())
    replacement = Streams(hint=3, rank=1)
    assert replacement.step(9) == original.step(9)
    assert replacement.order(2) == original.order(2)
    assert replacement.batch(2, 4) == original.batch(2, 4)


def test_ranks_and_steps_have_streams_of_their_own(unseeded: None) -> None:
    seeds = {Streams(3, rank).step(step) for rank in range(4) for step in range(4)}
    assert len(seeds) == 16


def test_the_seed_that_a_script_gives_matters(unseeded: None) -> None:
    torch.manual_seed(1)
    one = Streams(3, 0)
    torch.manual_seed(2)
    assert Streams(3, 0).step(0) != one.step(0)


def test_a_script_that_seeds_all_ranks_alike_shuffles_them_alike(unseeded: None) -> None:
    assert Streams(3, 0).order(0) != Streams(3, 1).order(0)
    torch.manual_seed(1)
    assert Streams(3, 0).order(0) == Streams(3, 1).order(0)
