"""Batches by step number: any step's batch, the same each time, without reading those before it."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from holdfast.random_state import Streams, mix, seed_all

_DISCARD_MAX = 2  # batches; further ahead the loader is positioned anew


class Batches:
    """`loader` read `epochs` times. Keeps what was given out since the last commit, for a step that runs again."""

    def __init__(self, loader: Iterable[Any], epochs: int, steps_per_epoch: int | None, streams: Streams) -> None:
        self.steps_per_epoch = _length(loader) if steps_per_epoch is None else steps_per_epoch
        self.total = self.steps_per_epoch * epochs
        self._source = _Positioned(loader, streams)
        self._iterator: Iterator[Any] | None = None
        self._next = -1  # the step whose batch the iterator gives next
        self._kept: dict[int, tuple[Any, list[int]]] = {}

    def epoch_of(self, step: int) -> int:
        return step // self.steps_per_epoch

    def get(self, step: int) -> Any:
        """Errors: RuntimeError where the loader ends before its epoch does."""
        if step in self._kept:
            batch, versions = self._kept[step]
            if _versions(batch) == versions:
                return batch
            self._next = -1  # the script changed it in place: read it again
        self._go_to(step)
        batch = self._read(step)
        self._kept[step] = (batch, _versions(batch))
        return batch

    def forget_before(self, step: int) -> None:
        for number in [n for n in self._kept if n < step]:
            del self._kept[number]

    def _go_to(self, step: int) -> None:
        at_new_epoch = step % self.steps_per_epoch == 0
        ahead = step - self._next
        same_epoch = self._next >= 0 and self.epoch_of(step) == self.epoch_of(self._next)
        if self._iterator is None or at_new_epoch or not same_epoch or not 0 <= ahead <= _DISCARD_MAX:
            self._iterator = self._source.iterate(self.epoch_of(step), step % self.steps_per_epoch)
            self._next = step
        while self._next < step:
            self._read(self._next)

    def _read(self, step: int) -> Any:
        assert self._iterator is not None
        try:
            batch = next(self._iterator)
        except StopIteration:
            raise RuntimeError(
                f"the loader ended at batch {step % self.steps_per_epoch} of epoch {self.epoch_of(step)},"
                f" an epoch has {self.steps_per_epoch}"
            ) from None
        self._next = step + 1
        return batch


class _Positioned:
    """Iterates `loader` from any batch of any epoch, its randomness a function of both."""

    def __init__(self, loader: Iterable[Any], streams: Streams) -> None:
        if isinstance(loader, Iterator):
            raise TypeError("steps() needs a loader that can be iterated anew, not an iterator or generator")
        self._loader = loader
        self._streams = streams
        self._clone: DataLoader[Any] | None = None
        self._sampler: _PositionedSampler | None = None
        self._generators = [(generator, generator.initial_seed()) for generator in _generators(loader)]
        if isinstance(loader, DataLoader) and not isinstance(loader.dataset, IterableDataset):
            self._clone, self._sampler = _clone(loader, streams)

    def iterate(self, epoch: int, start: int) -> Iterator[Any]:
        for part in _parts(self._loader):
            if callable(getattr(part, "set_epoch", None)):
                part.set_epoch(epoch)
        for generator, seed in self._generators:
            generator.manual_seed(mix(seed, epoch))
        seed_all(self._streams.order(epoch))
        if self._clone is not None and self._sampler is not None:
            self._sampler.epoch, self._sampler.start = epoch, start
            return iter(self._clone)
        return itertools.islice(iter(self._loader), start, None)


class _PositionedSampler:
    """Stands in for a loader's (batch) sampler: leaves out the first `start` and hands each batch its seed."""

    def __init__(self, inner: Any, streams: Streams) -> None:
        self._inner = inner
        self._streams = streams
        self.epoch = 0
        self.start = 0

    def __iter__(self) -> Iterator[Any]:
        epoch, start = self.epoch, self.start
        order = self._streams.order(epoch)
        inner = None
        for number in itertools.count():
            seed_all(mix(order, number))  # a sampler may draw at any time
            inner = iter(self._inner) if inner is None else inner
            try:
                index = next(inner)
            except StopIteration:
                return
            if number >= start:
                yield _Seeded(index, self._streams.batch(epoch, number))

    def __len__(self) -> int:
        return len(self._inner)


class _Seeded:
    """What a sampler gave, with the seed for reading it; travels to the loader's worker processes."""

    def __init__(self, index: Any, seed: int) -> None:
        self.index = index
        self.seed = seed


class _SeededDataset(Dataset[Any]):
    """A map-style data set that seeds all randomness before it reads a batch."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getitem__(self, index: _Seeded) -> Any:
        seed_all(index.seed)
        return self.inner[index.index]

    def __getitems__(self, indices: _Seeded) -> Any:
        seed_all(indices.seed)
        if callable(getattr(self.inner, "__getitems__", None)):
            return self.inner.__getitems__(indices.index)
        return [self.inner[index] for index in indices.index]

    def __len__(self) -> int:
        return len(self.inner)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # while unpickling in a worker
            raise AttributeError(name)
        return getattr(self.inner, name)


def _clone(loader: DataLoader[Any], streams: Streams) -> tuple[DataLoader[Any], _PositionedSampler]:
    """A loader like `loader` that can be positioned. By its `__dict__`, since a loader refuses assignment."""
    which = "sampler" if loader.batch_sampler is None else "batch_sampler"
    sampler = _PositionedSampler(getattr(loader, which), streams)
    clone = copy.copy(loader)
    clone.__dict__.update({which: sampler, "dataset": _SeededDataset(loader.dataset), "_iterator": None})
    return clone, sampler


def _parts(loader: Any) -> list[Any]:
    """The loader and what it is made of, each once."""
    sampler, batch_sampler = getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)
    parts = [loader, sampler, batch_sampler, getattr(batch_sampler, "sampler", None), getattr(loader, "dataset", None)]
    return list({id(part): part for part in parts if part is not None}.values())


def _generators(loader: Any) -> list[torch.Generator]:
    found = [getattr(part, "generator", None) for part in _parts(loader)]
    return list({id(g): g for g in found if isinstance(g, torch.Generator)}.values())


def _length(loader: Any) -> int:
    try:
        length = len(loader)
    except TypeError:
        raise ValueError("this loader does not know its length: give steps(loader, steps_per_epoch=...)") from None
    if length == 0:
        raise ValueError("the loader is empty")
    return length


def _versions(batch: Any) -> list[int]:
    """Counts of the changes made to the batch's tensors."""
    if isinstance(batch, torch.Tensor):
        return [batch._version]
    if isinstance(batch, dict):
        return [version for item in batch.values() for version in _versions(item)]
    if isinstance(batch, list | tuple):
        return [version for item in batch for version in _versions(item)]
    return []
