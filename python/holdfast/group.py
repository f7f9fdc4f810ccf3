"""The default process group of an epoch: made, handed to the models, unmade."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Reducer, Store
from torch.distributed import distributed_c10d as c10d
from torch.nn.parallel import DistributedDataParallel

from holdfast import interruptible, marks
from holdfast.abort_watch import AbortWatch
from holdfast.errors import GroupBroken
from holdfast.member import Member
from holdfast.session import Session

# A peer that stops while the group is being rebuilt, unseen by the agent, must not hold up the others for half an hour.
REBUILD_TIMEOUT = timedelta(seconds=30)
DEFAULT_TIMEOUT = timedelta(minutes=30)

_watch: AbortWatch | None = None
_models: list[weakref.ref[DistributedDataParallel]] = []  # in the order of their making, alike on all ranks


class EpochStore(Store):
    """torch's view of an epoch's keys, which the coordinator keeps. Nothing of another epoch can be seen."""

    def __init__(self, member: Member, epoch: int, timeout: timedelta) -> None:
        super().__init__()
        self._member = member
        self._epoch = epoch
        self._timeout = timeout

    def set(self, key: str, value: bytes | str) -> None:
        self._member.kv_set(self._epoch, key, value.encode() if isinstance(value, str) else bytes(value))

    def get(self, key: str) -> bytes:
        return self._member.kv_get(self._epoch, key, self._timeout.total_seconds())

    def add(self, key: str, value: int) -> int:
        return self._member.kv_add(self._epoch, key, value)

    def check(self, keys: list[str]) -> bool:
        return self._member.kv_check(self._epoch, list(keys))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        limit = self._timeout if timeout is None else timeout
        for key in keys:
            self._member.kv_get(self._epoch, key, limit.total_seconds())

    def delete_key(self, key: str) -> bool:
        return self._member.kv_delete(self._epoch, key)

    def num_keys(self) -> int:
        raise NotImplementedError("holdfast's store does not count its keys")

    def has_extended_api(self) -> bool:
        return False

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout


def watch_models() -> None:
    """From now on every DistributedDataParallel is known, and keeps its first bucket layout: a replacement would
    otherwise sum in another order than a survivor, and end with other last bits."""
    original = DistributedDataParallel.__init__

    def init(self: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _models.append(weakref.ref(self))

    DistributedDataParallel.__init__ = init  # type: ignore[method-assign]
    Reducer._rebuild_buckets = lambda self: False  # type: ignore[method-assign]


def models() -> list[DistributedDataParallel]:
    return [model for model in (reference() for reference in _models) if model is not None]


def sequence_number() -> int:
    """Collectives begun in the default group; -1 where there is none."""
    return int(sequence_counter()())


def sequence_counter() -> Callable[[], int]:
    """`sequence_number` of the group that is the default one now, for those who ask at every step."""
    group: Any = dist.group.WORLD
    counter: Callable[[], int] = (lambda: -1) if group is None else group._get_sequence_number_for_group
    return counter


def default_backend() -> str:
    return "nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"


def make_placeholder(rank: int, world_size: int) -> None:
    """A group that reaches nobody, so that a replacement can run the script up to its step loop alone."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)


def make(session: Session, epoch: int, timeout: timedelta, step: int) -> None:
    """Makes the default group of `epoch`. Errors: as torch's, where a peer does not come within `timeout`;
    GroupBroken at once where the epoch is aborted meanwhile: gloo would wait for a dead peer to connect."""
    hook = sys.excepthook  # torch wraps it anew each time; once is enough
    wrapped = getattr(hook, "__module__", "").startswith("torch.distributed")
    member = session.member
    member.mark(marks.GROUP_BEGIN, step)
    member.group_begin(epoch)
    store = EpochStore(member, epoch, timeout)
    rank, world_size = session.rank, session.world_size

    def init() -> None:
        dist.init_process_group(session.backend, store=store, rank=rank, world_size=world_size, timeout=timeout)

    try:
        if not interruptible.run(init, lambda: member.broken(epoch)):
            raise GroupBroken(f"the group of epoch {epoch} broke while it was being made")
    except BaseException:
        c10d._world.group_count = 0  # torch counts what it began: the next name would differ from the peers'
        raise
    finally:
        member.group_made(epoch)
        if wrapped:
            sys.excepthook = hook
    if session.on_device:
        global _watch
        _watch = AbortWatch(member, epoch)
    member.mark(marks.GROUP_MADE, step)


def unmake() -> None:
    """Destroys the default group, whose sockets are dead or whose peers are done with it."""
    global _watch
    if _watch is not None:
        _watch.stop()
        _watch = None
    if dist.is_initialized():
        dist.destroy_process_group()


def rebuild(session: Session, epoch: int, step: int) -> None:
    """Replaces the default group by that of `epoch`, in every model too."""
    if len(c10d._world.pg_map) > 1:
        raise RuntimeError("holdfast cannot rebuild groups made by dist.new_group; use the default group")
    unmake()
    make(session, epoch, min(REBUILD_TIMEOUT, session.timeout), step)
    _set_timeout(session.timeout)
    for model in models():
        model._update_process_group(c10d._get_default_group())  # type: ignore[no-untyped-call]


def _set_timeout(timeout: timedelta) -> None:
    if hasattr(dist, "set_timeout"):
        dist.set_timeout(timeout)
    else:
        c10d._set_pg_timeout(timeout)
