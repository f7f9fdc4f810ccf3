"""The user's handle on an attached run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, overload

from holdfast import checkpoint, marks
from holdfast.data import Batches
from holdfast.random_state import Streams
from holdfast.session import Session
from holdfast.step import Step
from holdfast.steps import Loop


class Run:
    """Made by `holdfast.attach()`. Track the state, then loop over `steps`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop: Loop | None = None

    @property
    def rank(self) -> int:
        return self._session.rank

    @property
    def local_rank(self) -> int:
        return self._session.place["local_rank"]

    @property
    def world_size(self) -> int:
        return self._session.world_size

    @property
    def id(self) -> str:
        return self._session.place["run_id"]

    @property
    def epoch(self) -> int:
        """Of the run: it grows with every fault."""
        return self._session.epoch

    def track(self, **things: Any) -> None:
        """Names what makes up the state: modules, optimizers, and whatever has `state_dict` and `load_state_dict`. All
        ranks hold it alike; a replacement gets it from a peer, a checkpoint keeps it."""
        if self._loop is not None:
            raise RuntimeError("track() must come before the step loop")
        for name, thing in things.items():
            self._session.tracked.add(name, thing)

    @overload
    def steps(self, what: int) -> Iterator[Step]: ...

    @overload
    def steps(
        self, what: Iterable[Any], *, epochs: int = 1, steps_per_epoch: int | None = None
    ) -> Iterator[tuple[Step, Any]]: ...

    def steps(self, what: Any, *, epochs: int = 1, steps_per_epoch: int | None = None) -> Iterator[Any]:
        """The step loop: `for step in steps(1000)`, or `for step, batch in steps(loader, epochs=3)`. One a run. Begins
        where the state is: at a checkpoint's step, or in a replacement at that of its peers."""
        if self._loop is not None:
            raise RuntimeError("a run has one step loop; give steps() all epochs at once")
        self._session.streams = Streams(self._session.place["seed_hint"], self.rank)
        if isinstance(what, int):
            self._loop = Loop(self._session, what, None)
        else:
            batches = Batches(what, epochs, steps_per_epoch, self._session.streams)
            self._loop = Loop(self._session, batches.total, batches)
        return iter(self._loop)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tells the launcher what this rank is busy with ("evaluate", "checkpoint", "compile"), each with a deadline of
        its own. A fault inside ends the block early; between steps it is not run again, inside a step it is."""
        if name not in marks.PHASES:
            raise ValueError(f"unknown phase {name!r}: one of {', '.join(marks.PHASES)}")
        loop, member = self._loop, self._session.member
        inside = loop is not None and loop.in_step
        step = 0 if loop is None else loop.applied
        member.phase(marks.PHASES[name], step)
        try:
            yield
        except Exception as error:
            if inside or loop is None or not loop.failed(error):
                raise
        finally:
            before = marks.TRAIN if inside else marks.BETWEEN
            member.phase(marks.START if loop is None else before, step)

    def checkpoint(self) -> bool:
        """Takes a checkpoint: inside a step after that step, else now. All ranks must ask alike. False: the last one is
        still being written, this one is left out."""
        loop = self._loop
        if loop is None:
            raise RuntimeError("checkpoint() needs a step loop")
        if loop.in_step or not loop.committed:
            loop.checkpoint_wanted = True
            return True
        return checkpoint.save(self._session, loop.applied)
