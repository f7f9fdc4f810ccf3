"""How far a load or save has come: a bar on a terminal, or a function that is told."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast._core import Counter

Progress = bool | Callable[[int, int], object]

PERIOD_S = 0.1
WIDTH = 30


@contextmanager
def shown(progress: Progress, total: int | Callable[[], int], what: str) -> Iterator[Counter | None]:
    """A counter for the core to count in, looked at ten times a second and once at the end; None where nobody asks."""
    if not progress or (progress is True and not sys.stderr.isatty()):
        yield None
        return
    whole = total() if callable(total) else total
    began = time.monotonic()
    tell = progress if callable(progress) else lambda done, of: draw(what, done, of, time.monotonic() - began)
    counter = Counter()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PERIOD_S):
            tell(min(counter.value(), whole), whole)

    watcher = threading.Thread(target=watch, name="holdfast-progress", daemon=True)
    watcher.start()
    try:
        yield counter
        finished = True
    except BaseException:
        finished = False
        raise
    finally:
        ended.set()
        watcher.join()
        if finished:
            tell(whole, whole)
        if progress is True:
            print(file=sys.stderr)


def line(what: str, done: int, whole: int, seconds: float) -> str:
    part = done / whole if whole else 1.0
    bar = "#" * int(part * WIDTH)
    speed = done / 1e9 / seconds if seconds > 0 else 0.0
    return f"{what} [{bar:<{WIDTH}}] {part:4.0%} {speed:.2f} GB/s"


def draw(what: str, done: int, whole: int, seconds: float) -> None:
    print("\r" + line(what, done, whole, seconds), end="", file=sys.stderr, flush=True)
