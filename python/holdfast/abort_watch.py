"""Aborts the communicator of a broken group: NCCL waits on the device, where a shut socket is not felt.

Not run on a GPU yet. A Python thread will do: a rank that waits for its device does not hold the interpreter.
"""

from __future__ import annotations

import threading

from torch.distributed import distributed_c10d as c10d

from holdfast.member import Member

_LOOK_EVERY_S = 0.02


class AbortWatch:
    """Watches the default group, of `epoch`, until `stop`."""

    def __init__(self, member: Member, epoch: int) -> None:
        self._member = member
        self._epoch = epoch
        self._group = c10d._get_default_group()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="holdfast-abort", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_EVERY_S):
            if self._member.broken(self._epoch):
                self._group.abort()
                return
