"""What this process is to the kernel: whose death ends it, and the name it shows in `ps`."""

from __future__ import annotations

import ctypes
import os
import signal
import threading

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int | None = None) -> None:
    """SIGKILL for this process when its parent dies. Ends it at once where the parent, `parent`, is dead already."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def agent_pid() -> int | None:
    """The agent that owns this process, where one does."""
    text = os.environ.get("HOLDFAST_AGENT_PID", "")
    return int(text) if text else None


def threads() -> int:
    """Threads of this process that the kernel knows of."""
    return len(os.listdir("/proc/self/task"))


def set_title(title: str) -> None:
    """The command line in `ps`; only the 15 bytes of the thread's name where setproctitle is not installed."""
    try:
        import setproctitle
    except ImportError:
        _libc.prctl(_PR_SET_NAME, title.encode()[:15], 0, 0, 0)
    else:
        setproctitle.setproctitle(title)


def worker_title(argv: list[str]) -> str:
    """For example "holdfast rank 2/4 train.py", from RANK and WORLD_SIZE."""
    what = argv[1] if argv[0] == "-m" and len(argv) > 1 else os.path.basename(argv[0])
    rank, world_size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or os.environ.get("HOLDFAST_SPARE") == "1":
        return f"holdfast spare {what}"
    return f"holdfast rank {rank}/{world_size} {what}"


_pid_before_fork: int | None = None


def _before_fork() -> None:
    # The death signal comes when the *thread* that forked ends. Only the main thread lives as long as its process.
    global _pid_before_fork
    is_main = threading.current_thread() is threading.main_thread()
    _pid_before_fork = os.getpid() if is_main else None


def _after_fork_in_child() -> None:
    if _pid_before_fork is not None:
        die_with_parent(_pid_before_fork)


def take_children_along() -> None:
    """From now on a child forked by the main thread (a DataLoader worker) is killed when this process dies."""
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
