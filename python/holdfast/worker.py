"""Runs a training script as Python itself would, and tells the launcher how it ended.

Forked by the fork server, or started by itself: `python -m holdfast.worker train.py ...` (or `-m module ...`), which is
how a standby process comes to be where forking can't serve. With HOLDFAST_SPARE=1 it first waits to be given a rank.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.machinery
import io
import os
import runpy
import signal
import sys
import threading
import types
from typing import NoReturn

from holdfast import errors, process, random_state

_OUR_FILES = frozenset({__file__, runpy.__file__, "<frozen runpy>"})


def run(argv: list[str]) -> NoReturn:
    """Runs the script of `argv` and ends this process as Python would at its end."""
    try:
        code = _run(argv)
    except SystemExit as request:
        code = _code_of(request)
    except KeyboardInterrupt as interrupt:
        sys.excepthook(type(interrupt), interrupt, interrupt.__traceback__)
        code = -signal.SIGINT
    _leave(code)


def _run(argv: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # whole lines, at once: the launcher shows them
    spare = os.environ.get("HOLDFAST_SPARE") == "1"
    random_state.remember_process_seed()
    if spare and not _wait_for_rank():
        return 0
    process.set_title(process.worker_title(argv))
    process.take_children_along()
    try:
        if argv[0] == "-m":
            _run_module(argv[1], argv[2:])
        else:
            _run_script(argv[0], argv[1:])
    except Exception as error:
        return _failed(error)
    return 0


def _wait_for_rank() -> bool:
    """Warm and parked until promoted. False: there is no more need of this spare."""
    from holdfast import joining, warm_up

    warm_up.first_step()
    member = joining.new_member()
    try:
        place = member.park()
    except RuntimeError:
        return False
    os.environ.pop("HOLDFAST_SPARE", None)
    os.environ.update(place)
    joining.keep_member(member)
    return True


def _run_script(path: str, arguments: list[str]) -> None:
    """As `python path arguments`. A fresh `__main__`, so nothing of ours shows through, and pickling finds it."""
    with open(path, "rb") as file:
        source = file.read()
    code = compile(source, path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__["__builtins__"] = __builtins__
    main.__dict__["__cached__"] = None
    sys.modules["__main__"] = main
    sys.argv[:] = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    exec(code, main.__dict__)


def _run_module(name: str, arguments: list[str]) -> None:
    """As `python -m name arguments`."""
    sys.argv[:] = [name, *arguments]
    sys.path[0] = os.getcwd()
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _failed(error: Exception) -> int:
    """Shows the error as Python would and tells the launcher; 1, the exit code."""
    trace = errors.without_our_frames(error, _OUR_FILES)
    errors.write_error_file(error.with_traceback(trace))
    sys.excepthook(type(error), error, trace)
    joining = sys.modules.get("holdfast.joining")
    if joining is not None:
        joining.tell_of_error(error)
    return 1


def _code_of(request: SystemExit) -> int:
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code
    print(request.code, file=sys.stderr)
    return 1


def _leave(code: int) -> NoReturn:
    """Threads are waited for, exit functions run, streams flushed. The interpreter is not taken apart: in a fork that
    would copy all the memory shared with the fork server, and torch's group must not outlive what it is made of."""
    getattr(threading, "_shutdown")()
    getattr(atexit, "_run_exitfuncs")()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def main() -> int:
    process.die_with_parent(process.agent_pid())
    argv = sys.argv[1:]
    if argv and argv[0] == "--":
        argv = argv[1:]
    if not argv or argv == ["-m"]:
        print("usage: python -m holdfast.worker (SCRIPT | -m MODULE) [ARGUMENT]...", file=sys.stderr)
        return 2
    run(argv)


if __name__ == "__main__":
    sys.exit(main())
