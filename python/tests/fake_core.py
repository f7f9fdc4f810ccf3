"""A stand-in for holdfast._core in pure Python: speaks pickles with `fake_run`. Importing it puts it in place."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import socket
import sys
import threading
import time
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import holdfast
from holdfast._core import Block, GlooWaits, copy_memory, fork_twice, shard_places  # noqa: F401


class Member:
    """One rank's seat. HOLDFAST_TEST_KILL="MARK:STEP[:COUNT]" makes it kill itself when it has written that mark."""

    def __init__(self) -> None:
        self._connection = Client(os.environ["HOLDFAST_ADDRESS"], "AF_UNIX")
        self._lock = threading.Lock()
        self._arrived = threading.Condition()
        self._replies: dict[int, Any] = {}
        self._next = 0
        self._broken = -1
        self._sockets: dict[int, list[socket.socket]] = {}
        self._group = threading.RLock()  # an abort comes on another thread
        self._before: set[str] | None = None
        self._making = -1
        self._gone = False
        self.marks: list[tuple[int, int]] = []
        self.phases: list[tuple[int, int]] = []
        self._kill = [int(n) for n in os.environ.get("HOLDFAST_TEST_KILL", "-1:-1").split(":")]
        self._seen = 0
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        self._send(("hello", int(os.environ["HOLDFAST_WORKER"])))
        threading.Thread(target=self._listen, daemon=True).start()

    # talking
    def _send(self, message: Any) -> None:
        with self._lock:
            self._connection.send(message)

    def _ask(self, *what: Any) -> Any:
        with self._arrived:
            self._next += 1
            number = self._next
        self._send(("ask", number, *what))
        with self._arrived:
            self._arrived.wait_for(lambda: number in self._replies or self._gone)
            if number not in self._replies:
                raise RuntimeError("the agent is gone")
            answer = self._replies.pop(number)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _listen(self) -> None:
        try:
            while True:
                kind, *rest = self._connection.recv()
                if kind == "abort":
                    self._abort(rest[0])
                else:
                    with self._arrived:
                        self._replies[rest[0]] = rest[1]
                        self._arrived.notify_all()
        except (EOFError, OSError):
            with self._arrived:
                self._gone = True
                self._arrived.notify_all()

    # sockets
    def _open_sockets(self) -> dict[str, int]:
        found = {}
        for name in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue
            if target.startswith("socket:"):
                found[target] = int(name)
        return found

    def group_begin(self, epoch: int) -> None:
        GlooWaits.install()
        GlooWaits.group_begin()
        with self._group:
            self._before = set(self._open_sockets())
            self._making = epoch

    def group_made(self, epoch: int) -> None:
        with self._group:
            self._record(epoch)
            self._before = None
            if self._broken >= epoch:
                self._shut(epoch)

    def _record(self, epoch: int) -> None:
        assert self._before is not None
        for number in [n for n in self._sockets if n < epoch]:
            self._close(number)
        now = self._open_sockets()
        new = [socket.socket(fileno=os.dup(now[name])) for name in now if name not in self._before]
        # gloo ends the process when its listening socket is shut
        connected = [item for item in new if not item.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
        self._sockets.setdefault(epoch, []).extend(connected)

    def _close(self, epoch: int) -> None:
        for item in self._sockets.pop(epoch, []):
            item.close()

    def _abort(self, epoch: int) -> None:
        with self._group:
            self._broken = max(self._broken, epoch)
            if self._before is not None and self._making <= epoch:
                self._record(self._making)
            for number in list(self._sockets):
                if number <= epoch:
                    self._shut(number)

    def _shut(self, epoch: int) -> None:
        for item in self._sockets.get(epoch, []):
            try:
                item.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._close(epoch)
        GlooWaits.group_broken()

    # the interface
    def park(self) -> dict[str, str]:
        return self._ask("park")

    def attach(self) -> dict[str, Any]:
        return self._ask("attach")

    def mark(self, mark: int, step: int) -> None:
        self.marks.append((mark, step))
        if [mark, step] == self._kill[:2]:
            self._seen += 1
            if self._seen == (self._kill[2] if len(self._kill) > 2 else 1):
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(60)

    def phase(self, phase: int, step: int) -> None:
        self.phases.append((phase, step))

    def ready(self, applied: int) -> Any:
        return self._ask("ready", applied)

    def broken(self, epoch: int) -> bool:
        return self._broken >= epoch

    def failed(self, text: str) -> None:
        """Nobody asks for it here."""

    def restored(self, epoch: int, step: int) -> None:
        self._send(("restored", epoch, step))

    def group_error(self, epoch: int, text: str) -> bool:
        return bool(self._ask("group_error", epoch, text))

    def kv_set(self, epoch: int, key: str, value: bytes) -> None:
        self._ask("kv_set", epoch, key, value)

    def kv_get(self, epoch: int, key: str, timeout_s: float) -> bytes:
        return self._ask("kv_get", epoch, key, timeout_s)

    def kv_add(self, epoch: int, key: str, value: int) -> int:
        return self._ask("kv_add", epoch, key, value)

    def kv_check(self, epoch: int, keys: list[str]) -> bool:
        return self._ask("kv_check", epoch, keys)

    def kv_delete(self, epoch: int, key: str) -> bool:
        return self._ask("kv_delete", epoch, key)

    def boundary(self, step: int) -> int:
        wanted = dict(item.split("=") for item in os.environ.get("HOLDFAST_TEST_BOUNDARY", "").split(",") if item)
        return int(wanted.get(str(step), 0))

    def save(self, step: int, structure: str, tensors: list[Any]) -> bool:
        folder = Path(os.environ["HOLDFAST_TEST_CHECKPOINTS"]) / str(step)
        folder.mkdir(exist_ok=True, parents=True)
        kept = {name: (dtype, shape, bytearray(data)) for name, dtype, shape, data in tensors}
        (folder / os.environ["RANK"]).write_bytes(pickle.dumps((structure, kept)))
        return True

    def writing(self) -> bool:
        return False

    def drain(self) -> None:
        self._send(("drained",))

    def finished(self, step: int) -> bool:
        return bool(self._ask("finished", step))

    def fault(self, step: int) -> str:
        return ""

    def spin(self) -> None:
        while True:
            pass

    def set_probe(self, probe: Any) -> None:
        self.probe = probe

    def close(self) -> None:
        with self._arrived:
            self._gone = True
            self._arrived.notify_all()
        self._connection.close()


class OpenCheckpoint:
    def __init__(self, directory: str) -> None:
        self._tensors: dict[str, tuple[str, list[int], bytearray]] = {}
        for path in sorted(Path(directory).iterdir()):
            self.structure, part = pickle.loads(path.read_bytes())
            self._tensors.update(part)

    def tensors(self) -> dict[str, tuple[str, list[int]]]:
        return {name: (dtype, shape) for name, (dtype, shape, _) in self._tensors.items()}

    def read(self, boxes: list[tuple[str, list[int], list[int], Any]]) -> tuple[int, int]:
        for name, _, _, memory in boxes:
            memory[:] = self._tensors[name][2]
        total = sum(len(memory) for *_, memory in boxes)
        return total, total


sys.modules["holdfast._core"] = holdfast._core = sys.modules[__name__]  # type: ignore[assignment]
