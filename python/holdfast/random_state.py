"""Random numbers as a function of (seed, rank, step): a step that runs again, here or elsewhere, draws the same."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_process_seed: int | None = None
_python: Any = random.seed.__self__  # type: ignore[attr-defined]  # whose methods the module's functions are
_seeders: list[tuple[Callable[[int], object], int]] = []
_has_cuda = False


def mix(*numbers: int) -> int:
    """A well-spread 63-bit number from `numbers`, whose order matters (splitmix64 over each)."""
    state = 0
    for number in numbers:
        state = (state + (number & _MASK) + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state >> 1


def seed_all(seed: int) -> None:
    """Seeds torch (with its devices, where they are in use), random and numpy. About 8 microseconds."""
    for seeder, mask in _seeders or _find_seeders():
        seeder(seed & mask)
    _python.gauss_next = None  # as random.seed does
    if _has_cuda:
        import torch

        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.manual_seed_all(seed)


def _find_seeders() -> list[tuple[Callable[[int], object], int]]:
    """What lies under the public functions: those cost twice as much, and this runs at every step."""
    global _has_cuda
    import torch

    _has_cuda = torch.version.cuda is not None or torch.version.hip is not None
    found: list[tuple[Callable[[int], object], int]] = [
        (torch.default_generator.manual_seed, _MASK),
        (super(random.Random, _python).seed, _MASK),
    ]
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return found  # it may still be imported
    found.append((numpy.random.rand.__self__.seed, 0xFFFFFFFF))
    _seeders.extend(found)
    return found


def remember_process_seed() -> None:
    """Notes torch's seed before the user's script runs, to tell later whether the script has chosen one."""
    global _process_seed
    try:
        import torch
    except ImportError:
        return
    _process_seed = torch.initial_seed()


def user_seed() -> int | None:
    """The seed that the script gave torch; None where it gave none."""
    import torch

    seed = torch.initial_seed()
    return None if seed == _process_seed else seed


class Streams:
    """The seeds of one rank. `hint` comes from the launcher: the same for all ranks and for every replacement."""

    def __init__(self, hint: int, rank: int) -> None:
        chosen = user_seed()
        self.rank = rank
        self.base = mix(hint, 0 if chosen is None else chosen + 1)
        # A script that seeds all ranks alike means them to shuffle alike; one that seeds none means the contrary.
        self._order_base = mix(self.base, rank) if chosen is None else self.base
        self._step_base = mix(self.base, rank)

    def step(self, step: int) -> int:
        """Spread but not mixed: the generators mix their seeds themselves, and this runs at every step."""
        return (self._step_base + step * _GOLDEN) & (_MASK >> 1)

    def order(self, epoch: int) -> int:
        """For the order of samples in an epoch."""
        return mix(self._order_base, 0x6F72646572, epoch)

    def batch(self, epoch: int, batch: int) -> int:
        """For what is random about reading a batch."""
        return mix(self.base, self.rank, 0x6261746368, epoch, batch)
