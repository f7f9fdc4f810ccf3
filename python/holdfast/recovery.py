"""Going on after a fault: wait for all ranks, make the new epoch's group, bring the state of the step agreed on."""

from __future__ import annotations

from collections.abc import Callable

from holdfast import checkpoint, errors, group, marks, probe, transfer
from holdfast.member import Plan
from holdfast.session import Session


def rejoin(session: Session, applied: int) -> int:
    """Blocks until all ranks are together again; the number of steps that the state now has applied. `applied`: how
    many this rank's state has, -1 where it can't be used. A fault meanwhile starts it over."""
    member = session.member
    while True:
        plan = member.ready(applied)
        fallen_back = Place(applied)
        try:
            _enter(session, plan, fallen_back)
        except Exception as error:
            if not is_fault(session, plan["epoch"], error):
                raise
            applied = fallen_back.applied
            continue
        probe.settle()
        member.mark(marks.RESTORED, plan["step"])
        member.restored(plan["epoch"], plan["step"])
        return plan["step"]


class Place:
    """How many steps the state has applied, as far as it is known while it is being replaced."""

    def __init__(self, applied: int) -> None:
        self.applied = applied


def is_fault(session: Session, epoch: int, error: BaseException) -> bool:
    """Whether `error` came of a broken group, so that all may go on. Blocks until the agent knows."""
    if session.member.broken(epoch):
        return True  # whatever went wrong in a broken epoch is tried again; a mistake of the script comes again too
    return errors.is_group_error(error) and session.member.group_error(epoch, f"{type(error).__name__}: {error}")


def _enter(session: Session, plan: Plan, place: Place) -> None:
    epoch, step = plan["epoch"], plan["step"]
    if not session.joined or session.epoch != epoch:
        session.joined = False
        group.rebuild(session, epoch, step)
        session.epoch, session.joined = epoch, True
    session.member.mark(marks.RESTORE_BEGIN, step)
    if plan["checkpoint"]:
        _replace(place, step, lambda: checkpoint.load(session, plan["checkpoint"]))
        return
    outgoing = [target for source, target in plan["copies"] if source == session.rank]
    incoming = [source for source, target in plan["copies"] if target == session.rank]
    if outgoing:
        flat = session.tracked.collect()
        for target in outgoing:
            transfer.send(flat, target)
    for source in incoming:
        received = transfer.receive(source)
        _replace(place, step, lambda: session.tracked.restore(received))


def _replace(place: Place, step: int, restore: Callable[[], None]) -> None:
    place.applied = -1
    restore()
    place.applied = step
