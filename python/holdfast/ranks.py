"""How the ranks of a job tell each other a few words, without a collective."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist


class Ranks:
    """A rank's own view. `store`: a key-value store as of torch.distributed, of which nobody else uses `prefix`; needed
    where `size` is above 1."""

    _made = itertools.count()

    def __init__(self, rank: int, size: int, store: Any = None, prefix: str = "holdfast/0/") -> None:
        if size > 1 and store is None:
            raise ValueError("several ranks need a store to agree through; initialise torch.distributed first")
        self.rank = rank
        self.size = size
        self._store = store
        self._prefix = prefix

    @classmethod
    def usual(cls) -> Ranks:
        """Those of torch.distributed's default group, or one alone."""
        if not dist.is_available() or not dist.is_initialized():
            return cls(0, 1)
        store = dist.distributed_c10d._get_default_store()
        # A connection of its own: one that waits holds up whoever else uses it.
        own = store.clone() if hasattr(store, "clone") else store
        return cls(dist.get_rank(), dist.get_world_size(), own, f"holdfast/{next(cls._made)}/")

    def apart(self, name: str) -> Ranks:
        """The same ranks on a connection of its own, for a thread of its own: one that waits holds up whoever else uses
        it."""
        store = self._store.clone() if hasattr(self._store, "clone") else self._store
        return Ranks(self.rank, self.size, store, f"{self._prefix}{name}/")

    def told(self, key: str, say: Callable[[], str], patience_s: float = 600.0) -> str:
        """What rank 0 says. Errors: TimeoutError."""
        if self.rank == 0:
            said = say()
            if self._store is not None:
                self._store.set(self._prefix + key, said)
            return said
        self._await([key], patience_s)
        return self._get(key)

    def gathered(self, key: str, word: str, patience_s: float) -> list[str]:
        """Everybody's word on rank 0, by rank; on others nothing. Errors: TimeoutError."""
        if self._store is None:
            return [word]
        self._store.set(f"{self._prefix}{key}/{self.rank}", word)
        if self.rank != 0:
            return []
        keys = [f"{key}/{rank}" for rank in range(self.size)]
        self._await(keys, patience_s)
        words = [self._get(each) for each in keys]
        for each in keys:
            self._store.delete_key(self._prefix + each)
        return words

    def _get(self, key: str) -> str:
        value: bytes = self._store.get(self._prefix + key)
        return value.decode()

    def _await(self, keys: list[str], patience_s: float) -> None:
        """Waits in the store, which takes no time of this process's; the connection is ours alone."""
        try:
            self._store.wait([self._prefix + key for key in keys], timedelta(seconds=patience_s))
        except dist.DistStoreError as error:
            raise TimeoutError(
                f"the other ranks have not answered within {timedelta(seconds=patience_s)}: {error}"
            ) from None
