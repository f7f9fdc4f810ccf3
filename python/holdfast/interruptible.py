"""Waiting for a call that blocks in foreign code, with leave to stop waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable

_LOOK_EVERY_S = 0.005


def run(call: Callable[[], None], given_up: Callable[[], bool]) -> bool:
    """True: `call` came to its end, in a thread of its own. False: `given_up` came first; the thread goes on until the
    call ends by itself, and nobody hears of it. Errors: those of `call`."""
    done = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)
        done.set()

    threading.Thread(target=work, name="holdfast-call", daemon=True).start()
    while not done.wait(_LOOK_EVERY_S):
        if given_up():
            return False
    if errors:
        raise errors[0]
    return True
