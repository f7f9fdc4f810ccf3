"""Any step's batch, the same each time, without reading those before it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler
from torch.utils.data.distributed import DistributedSampler

from holdfast.data import Batches
from holdfast.random_state import Streams


STREAMS = Streams(hint=7, rank=1)


class Noisy(Dataset[torch.Tensor]):
    """Draws from every stream, and counts what is read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> torch.Tensor:
        self.read.append(index)
        return torch.tensor([index, torch.rand(1).item(), random.random(), float(numpy.random.rand())])


def batches(loader: Any, epochs: int = 3, **options: Any) -> Batches:
    return Batches(loader, epochs, options.pop("steps_per_epoch", None), STREAMS)


def plain(**options: Any) -> DataLoader[torch.Tensor]:
    return DataLoader(Noisy(), batch_size=4, **options)


LOADERS = {
    "in order": lambda: plain(),
    "shuffled": lambda: plain(shuffle=True),
    "own generator": lambda: plain(shuffle=True, generator=torch.Generator().manual_seed(5)),
    "with replacement": lambda: plain(sampler=RandomSampler(Noisy(), replacement=True, num_samples=20)),
    "distributed": lambda: plain(sampler=DistributedSampler(Noisy(), num_replicas=2, rank=1)),
    "workers": lambda: plain(shuffle=True, num_workers=2),
    "lasting workers": lambda: plain(shuffle=True, num_workers=2, persistent_workers=True),
    "one by one": lambda: DataLoader(Noisy(), batch_size=None, shuffle=True),
    "a list": lambda: [torch.tensor([float(i)]) for i in range(5)],
}


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
def test_a_batch_depends_on_its_step_alone(make: Any) -> None:
    whole = batches(make())
    expected = [whole.get(step).clone() for step in range(whole.total)]
    torch.seed()
    random.seed()
    numpy.random.seed()
    for start in (1, whole.steps_per_epoch - 1, whole.steps_per_epoch, whole.total - 2):
        later = batches(make())
        for step in (start, start + 1):
            assert torch.equal(later.get(step), expected[step]), (start, step)


def test_epochs_differ() -> None:
    whole = batches(plain(shuffle=True))
    first, second = ([whole.get(step)[:, 0].tolist() for step in range(at, at + 5)] for at in (0, 5))
    assert first != second


def test_what_is_skipped_is_not_read() -> None:
    loader = plain()
    later = batches(loader)
    later.get(3)
    assert loader.dataset.read == [12, 13, 14, 15]  # type: ignore[attr-defined]


def test_a_step_that_runs_again_gets_the_same_batch() -> None:
    loader = plain()
    served = batches(loader)
    batch = served.get(2)
    assert served.get(2) is batch
    served.get(3)
    assert served.get(2) is batch


def test_a_batch_changed_in_place_is_read_again() -> None:
    served = batches(plain())
    batch = served.get(1)
    before = batch.clone()
    batch.zero_()
    assert torch.equal(served.get(1), before)
    assert torch.equal(served.get(2), batches(plain()).get(2))


def test_what_is_committed_is_let_go() -> None:
    served = batches(plain())
    first = served.get(0)
    served.get(1)
    served.forget_before(1)
    assert served.get(0) is not first


def test_samplers_and_data_sets_are_told_the_epoch() -> None:
    told: list[int] = []

    class Told(Noisy):
        def set_epoch(self, epoch: int) -> None:
            told.append(epoch)

    served = batches(DataLoader(Told(), batch_size=10))
    for step in range(4):
        served.get(step)
    assert told == [0, 1]


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


def test_a_stream_needs_its_length_and_is_read_from_its_beginning() -> None:
    with pytest.raises(ValueError, match="steps_per_epoch"):
        batches(DataLoader(Stream(), batch_size=2))
    served = batches(DataLoader(Stream(), batch_size=2), steps_per_epoch=4)
    assert served.get(6).tolist() == [4, 5]


def test_a_loader_that_ends_early_is_an_error() -> None:
    served = batches(DataLoader(Stream(), batch_size=2), steps_per_epoch=5)
    with pytest.raises(RuntimeError, match="batch 4 of epoch 0"):
        served.get(4)


def test_an_iterator_is_refused() -> None:
    with pytest.raises(TypeError, match="anew"):
        batches(iter([1, 2]), steps_per_epoch=2)
    with pytest.raises(ValueError, match="empty"):
        batches([])


def test_the_loader_of_the_script_is_left_alone() -> None:
    loader = plain(shuffle=True)
    inner = loader.dataset
    batches(loader).get(0)
    assert loader.dataset is inner
    assert len(list(loader)) == 5
