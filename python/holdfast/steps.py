"""The step loop: yields each step until all ranks have done it, and brings this rank back in after a fault."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from holdfast import checkpoint, errors, group, marks, random_state, recovery
from holdfast.buffer_sync import BufferSync
from holdfast.data import Batches
from holdfast.hooks import BEGAN, PENDING, Hooks
from holdfast.member import STOP, TAKE_CHECKPOINT
from holdfast.session import Session
from holdfast.step import Step
from holdfast.undo import Undo


class Loop:
    """`applied` counts the steps in the tracked state; `committed` those at the last boundary to which `Undo` leads
    back. They differ while gradients pile up over several steps: those die with a rank, so all begin them again."""

    def __init__(self, session: Session, total: int, batches: Batches | None) -> None:
        self._session = session
        self._member = session.member
        self._total = total
        self._seed_of = session.streams.step
        self._on_device = session.on_device
        self._every: int = session.place["checkpoint_every_steps"]
        self._batches = batches
        self.applied = 0
        self._committed = 0
        self._undo = Undo(session.tracked)
        self._sync = BufferSync()
        self._hooks = Hooks(session.member, session.tracked, self._before_optimizer)
        self._keep_all = False  # collectives after an optimizer have been seen
        self._collectives = group.sequence_counter()
        self._collectives_before = 0
        self._broken = False  # the group failed under this rank's hands
        self.in_step = False
        self._wanted = 0  # actions put off until the next commit
        self.checkpoint_wanted = False

    def __iter__(self) -> Iterator[Any]:
        self._session.tracked.collect()  # what can't be stored is found now, not at the first fault
        self._sync.take_over(group.models())
        self._hooks.install()
        self._undo.commit()
        self._member.mark(marks.LOOP_BEGIN, self.applied)
        self._rejoin(-1 if self._session.place["replacement"] else 0)
        while True:
            if self._broken or self._member.broken(self._session.epoch):
                self._member.phase(marks.RECOVER, self.applied)
                self._rejoin(self._back())
            elif self.applied < self._total:
                step = Step(self.applied, self)
                if self._batches is None:
                    yield step
                else:
                    step.batch = self._batches.get(self.applied)
                    step.epoch = self._batches.epoch_of(self.applied)
                    yield step, step.batch
                if step.completed:
                    self._wanted |= self._member.boundary(self.applied - 1)
                    if self._wanted or self.checkpoint_wanted or self._every:
                        self._boundary()
                elif not self._broken:
                    raise RuntimeError(f"step {step} was not run: the loop's body needs `with step:` around its work")
            elif self._member.finished(self.applied):
                break
            else:
                self._broken = True
        self._member.mark(marks.FINISHED, self.applied)

    def begin(self, step: Step) -> None:
        number = self.applied
        if self.in_step or step != number:
            raise RuntimeError(f"step {step} can't be entered now: the loop is at step {number}")
        self.in_step = True
        self._member.mark(marks.STEP_BEGIN, number)
        random_state.seed_all(self._seed_of(number))
        self._hooks.begin(number)
        if self._sync.needed:
            self._sync.begin()
        fault = self._member.fault(number)
        if fault:
            self._act(fault)

    def end(self, step: Step, error: BaseException | None) -> bool:
        """Whether `error` is dealt with."""
        self.in_step = False
        if error is None:
            try:
                if self._sync.needed:
                    self._sync.run()
                happened = self._hooks.end()
                if happened & BEGAN and self._collectives() != self._collectives_before:
                    self._keep_all = True
                self._member.mark(marks.STEP_END, self.applied)
                self.applied += 1
                if not happened & PENDING:
                    self._commit()
                step.completed = True
                return False
            except Exception as late:
                error = late
                if not self.failed(late):
                    raise
                return True
        return isinstance(error, Exception) and self.failed(error)

    def failed(self, error: BaseException) -> bool:
        """Whether `error` came of a broken group. The loop then rejoins when it is next asked for a step."""
        if not recovery.is_fault(self._session, self._session.epoch, error):
            return False
        self._broken = True
        return True

    @property
    def committed(self) -> bool:
        """Whether the state is that of a boundary, without gradients under way."""
        return self._committed == self.applied and not self._broken

    def _commit(self) -> None:
        self._committed = self.applied
        self._undo.commit()
        if self._batches is not None:
            self._batches.forget_before(self.applied)

    def _before_optimizer(self) -> None:
        if self._on_device:
            self._wait_for_device()
        if self._sync.needed:
            self._sync.run()
        if self._keep_all and not self._hooks.began:
            self._undo.keep()
        self._collectives_before = self._collectives()

    def _wait_for_device(self) -> None:
        """Gradients summed by an aborted communicator are garbage: know before the optimizer uses them."""
        import torch

        torch.cuda.current_stream().synchronize()
        if self._member.broken(self._session.epoch):
            raise errors.GroupBroken(f"the group of epoch {self._session.epoch} broke")

    def _back(self) -> int:
        """Steps applied by the state after what a failed step did to it is undone; -1 where that can't be done."""
        return self._committed if self._undo.back(self._hooks.began) else -1

    def _rejoin(self, applied: int) -> None:
        self.applied = recovery.rejoin(self._session, applied)
        self._collectives = group.sequence_counter()
        self._broken = False
        self._hooks.boundary()
        self._commit()
        self._member.phase(marks.BETWEEN, self.applied)

    def _boundary(self) -> None:
        if self.checkpoint_wanted or (self._every > 0 and self.applied % self._every == 0):
            self._wanted |= TAKE_CHECKPOINT
        self.checkpoint_wanted = False
        if self._wanted == 0 or not self.committed:
            return
        wanted, self._wanted = self._wanted, 0
        if wanted & STOP:
            self._member.drain()  # an unfinished checkpoint would keep the last one out
        checkpoint.save(self._session, self.applied)
        if wanted & STOP:
            self._member.drain()
            raise errors.Stopped(self.applied)

    def _act(self, fault: str) -> None:
        """A fault that the launcher was told to schedule."""
        if fault in ("spin", "gil"):
            self._member.spin()
        while True:
            time.sleep(3600)
