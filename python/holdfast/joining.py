"""Joining the run that the launcher started."""

from __future__ import annotations

import atexit
import os
import traceback
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast import errors
from holdfast.member import Member

if TYPE_CHECKING:
    from holdfast.run import Run

_member: Member | None = None
_run: Run | None = None


def new_member() -> Member:
    """A connection to the agent. Errors: RuntimeError where there is none."""
    if "HOLDFAST_ADDRESS" not in os.environ:
        raise RuntimeError("no launcher: start this script with `holdfast run`")
    from holdfast import _core

    member: Member = _core.Member()
    return member


def keep_member(member: Member) -> None:
    """For `attach` to use: a spare has connected before its script runs."""
    global _member
    _member = member


def attach(backend: str | None = None, timeout: timedelta | None = None) -> Run:
    """Joins the run and makes the default process group, in place of `dist.init_process_group`. A replacement gets a
    placeholder for it, which reaches nobody, until its step loop begins. Errors: RuntimeError."""
    global _run, _member
    if _run is not None:
        return _run
    from holdfast import group, marks, probe
    from holdfast.run import Run
    from holdfast.session import Session

    _member = _member or new_member()
    place = _member.attach()
    session = Session(
        member=_member,
        place=place,
        backend=backend or group.default_backend(),
        timeout=timeout or group.DEFAULT_TIMEOUT,
        epoch=place["epoch"],
        joined=not place["replacement"],
    )
    _member.mark(marks.ATTACHED, 0)
    _member.set_probe(probe.look)
    group.watch_models()
    if place["replacement"]:
        group.make_placeholder(session.rank, session.world_size)
    else:
        group.make(session, session.epoch, session.timeout, 0)
    atexit.register(_leave)
    _run = Run(session)
    return _run


def tell_of_error(error: BaseException) -> None:
    """The script failed, and this process is on its way out: no rank that hangs. Where the error came of a broken
    group, the agent should know that the script is not to blame."""
    if _run is None or _member is None:
        return
    try:
        if errors.is_group_error(error):
            _member.group_error(_run.epoch, f"{type(error).__name__}: {error}")
        else:
            _member.failed("".join(traceback.format_exception(error)))
    except RuntimeError:
        pass  # the agent is gone: nobody to tell


def _leave() -> None:
    """The core's thread must not call into an interpreter that is going."""
    from holdfast import group

    group.unmake()
    if _member is not None:
        _member.close()
