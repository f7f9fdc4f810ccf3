"""A stand-in for the agent: a coordinator for one run of `fake_core` members, forked by the real fork server."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_PR_SET_CHILD_SUBREAPER = 36


class ForkServer:
    """The real one, with `fake_core` preloaded."""

    def __init__(self, preload: list[str] | None = None, env: dict[str, str] | None = None) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        modules = ["fake_core"] if preload is None else preload
        arguments = [word for name in modules for word in ("--preload", name)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.fork_server", *arguments],
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
            | {"PYTHONPATH": f"{_HERE.parent}:{_HERE}", "HOLDFAST_AGENT_PID": str(os.getpid())}
            | {"HOLDFAST_FORK_FD": str(theirs.fileno())}
            | (env or {}),
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self.greeting = json.loads(self.socket.recv(200_000))
        self._next = 0

    def fork(self, argv: list[str], env: dict[str, str | None], out: int, cwd: str = "") -> dict[str, Any]:
        self._next += 1
        request = {"fork": self._next, "argv": argv, "env": env, "cwd": cwd, "fds": ["out", "err"]}
        socket.send_fds(self.socket, [json.dumps(request).encode()], [out, out])
        return json.loads(self.socket.recv(200_000))

    def close(self) -> int:
        self.socket.close()
        return self.process.wait()


@dataclass
class Worker:
    number: int
    pid: int
    pidfd: int
    out: int
    rank: int | None
    replacement: bool = False
    connection: Connection | None = None
    text: str = ""
    exit_status: int | None = None
    waiting: dict[str, tuple[int, Any]] = field(default_factory=dict)  # request kind: (number, argument)
    parked: bool = False


@dataclass
class Result:
    outputs: dict[int, str]  # by rank: of whoever held it last
    all_outputs: list[str]
    exit_statuses: dict[int, int]
    epochs: int
    deaths: int


class FakeRun:
    """Runs `argv` on `world_size` ranks until all have ended, replacing those that die by SIGKILL."""

    def __init__(
        self, server: ForkServer, folder: Path, argv: list[str], world_size: int, spares: int = 0,
        env: dict[str, str] | None = None,
        kills: dict[int, str] | None = None,
        checkpoint: str = "",
        limit_s: float = 120,
        replacement_kills: dict[int, str] | None = None,
    ) -> None:  # fmt: skip
        self.server, self.argv, self.world_size = server, argv, world_size
        self.address = str(folder / f"agent-{time.monotonic_ns()}.sock")
        self.listener = Listener(self.address, "AF_UNIX")
        self.env = env or {}
        self.kills = dict(kills or {})
        self.replacement_kills = dict(replacement_kills or {})
        self.checkpoint = checkpoint
        self.limit_s = limit_s
        self.epoch = 0
        self.deaths = 0
        self.workers: list[Worker] = []
        self.kv: dict[str, bytes] = {}
        self.gets: list[tuple[Worker, int, str, float]] = []
        self.broken_at = -1  # deaths are being dealt with: the epoch that they broke
        self.spares_wanted = spares
        self.faults_open = False

    def play(self) -> Result:
        try:
            for rank in range(self.world_size):
                self._start(rank, replacement=False)
            for _ in range(self.spares_wanted):
                self._start(None, replacement=False)
            deadline = time.monotonic() + self.limit_s
            while any(w.exit_status is None and w.rank is not None for w in self.workers):
                self._turn()
                if time.monotonic() > deadline:
                    self._show_stacks()
                    raise AssertionError("the run did not end:\n" + "\n".join(self._describe()))
        finally:
            self._end()
        last = {w.rank: w for w in self.workers if w.rank is not None}
        return Result(
            {rank: w.text for rank, w in last.items()},
            [w.text for w in self.workers],
            {rank: w.exit_status or 0 for rank, w in last.items()},
            self.epoch,
            self.deaths,
        )

    def _show_stacks(self) -> None:
        for w in self.workers:
            if w.exit_status is None:
                signal.pidfd_send_signal(w.pidfd, signal.SIGUSR1)
        for _ in range(20):
            self._turn()

    def _describe(self) -> list[str]:
        return [
            f"worker {w.number} rank {w.rank} exit {w.exit_status} waiting {list(w.waiting)}:\n{w.text}"
            for w in self.workers
        ]

    def _start(self, rank: int | None, replacement: bool) -> None:
        number = len(self.workers) + 1
        env: dict[str, str | None] = {
            "HOLDFAST_ADDRESS": self.address, "HOLDFAST_WORKER": str(number), "OMP_NUM_THREADS": "1", **self.env,
        }  # fmt: skip
        kill = (self.replacement_kills if replacement else self.kills).pop(-1 if rank is None else rank, None)
        if kill is not None:
            env["HOLDFAST_TEST_KILL"] = kill
        if rank is None:
            env["HOLDFAST_SPARE"] = "1"
        else:
            env |= {"RANK": str(rank), "WORLD_SIZE": str(self.world_size), "LOCAL_RANK": str(rank)}
        read_end, write_end = os.pipe()
        answer = self.server.fork(self.argv, env, write_end)
        os.close(write_end)
        pid = answer["pid"]
        self.workers.append(Worker(number, pid, os.pidfd_open(pid), read_end, rank, replacement))

    # the loop
    def _turn(self) -> None:
        readers: dict[int, Any] = {self.listener._listener._socket.fileno(): None}  # type: ignore[attr-defined]
        for w in self.workers:
            if w.exit_status is None:
                readers[w.pidfd] = ("exit", w)
            if w.out >= 0:
                readers[w.out] = ("out", w)
            if w.connection is not None:
                readers[w.connection.fileno()] = ("message", w)
        ready, _, _ = select.select(list(readers), [], [], 0.05)
        exits = []
        for descriptor in ready:
            what = readers[descriptor]
            if what is None:
                self._accept()
            elif what[0] == "out":
                self._read(what[1])
            elif what[0] == "message":
                self._message(what[1])
            else:
                exits.append(what[1])
        for w in exits:
            self._exited(w)
        self._expire()

    def _accept(self) -> None:
        connection = self.listener.accept()
        _, number = connection.recv()
        self.workers[number - 1].connection = connection

    def _read(self, w: Worker) -> None:
        data = os.read(w.out, 65536)
        w.text += data.decode(errors="replace")
        if not data:
            os.close(w.out)
            w.out = -1

    def _exited(self, w: Worker) -> None:
        _, status = os.waitpid(w.pid, 0)
        w.exit_status = os.waitstatus_to_exitcode(status)
        os.close(w.pidfd)
        while w.connection is not None and w.connection.poll(0):
            self._message(w)
        if w.exit_status == -signal.SIGKILL and w.rank is not None:
            self._died(w)

    def _died(self, w: Worker) -> None:
        self.deaths += 1
        rank = w.rank
        assert rank is not None
        self._break()
        spare = next((s for s in self.workers if s.parked and s.exit_status is None), None)
        if spare is None:
            self._start(rank, replacement=True)
            return
        spare.parked, spare.rank, spare.replacement = False, rank, True
        place = {"RANK": str(rank), "WORLD_SIZE": str(self.world_size), "LOCAL_RANK": str(rank)}
        self._answer(spare, "park", place)
        self._start(None, replacement=False)

    def _break(self) -> None:
        """Aborts the epoch; everybody alive is to come to `ready`."""
        if self.broken_at != self.epoch:
            self.broken_at = self.epoch
            for w in self._seated():
                self._tell(w, ("abort", self.epoch))
            for worker, number, _, _ in self.gets:
                self._tell(worker, ("reply", number, RuntimeError(f"epoch {self.epoch} is closed")))
            self.gets = []
        for w in self._seated():
            self._answer(w, "group_error", True)
            self._answer(w, "finished", False)

    def _seated(self) -> list[Worker]:
        return [w for w in self.workers if w.rank is not None and w.exit_status is None and w.connection is not None]

    def _tell(self, w: Worker, message: Any) -> None:
        try:
            assert w.connection is not None
            w.connection.send(message)
        except OSError:
            pass  # dead, its exit will be seen

    def _answer(self, w: Worker, kind: str, value: Any) -> None:
        if kind in w.waiting:
            number, _ = w.waiting.pop(kind)
            self._tell(w, ("reply", number, value))

    def _message(self, w: Worker) -> None:
        assert w.connection is not None
        try:
            kind, *rest = w.connection.recv()
        except (EOFError, OSError):
            w.connection.close()
            w.connection = None
            return
        if kind == "ask":
            number, what, *arguments = rest
            getattr(self, f"_on_{what}")(w, number, *arguments)

    # requests
    def _on_park(self, w: Worker, number: int) -> None:
        w.waiting["park"] = (number, None)
        w.parked = True

    def _on_attach(self, w: Worker, number: int) -> None:
        place = {
            "rank": w.rank, "local_rank": w.rank, "world_size": self.world_size, "epoch": self.epoch,
            "replacement": w.replacement, "run_id": "test", "seed_hint": 7, "checkpoint_every_steps": 0,
            "checkpoint_every_s": 0.0,
        }  # fmt: skip
        self._tell(w, ("reply", number, place))

    def _on_ready(self, w: Worker, number: int, applied: int) -> None:
        w.waiting["ready"] = (number, applied)
        seated = [s for s in self._seated() if "ready" in s.waiting]
        if len(seated) < self.world_size:
            return
        if self.broken_at == self.epoch:
            self.epoch += 1
            self.kv = {}
        at = {s.rank: s.waiting["ready"][1] for s in seated}
        step = max(at.values())
        source = min(rank for rank, value in at.items() if value == step)
        copies = [(source, rank) for rank, value in sorted(at.items()) if value < step]
        checkpoint = ""
        if self.checkpoint and self.epoch == 0:
            checkpoint, copies, step = self.checkpoint, [], int(Path(self.checkpoint).name)
        elif step < 0:
            raise AssertionError("no rank has a usable state")
        plan = {"epoch": self.epoch, "step": step, "copies": copies, "checkpoint": checkpoint}
        for s in seated:
            self._answer(s, "ready", plan)

    def _on_group_error(self, w: Worker, number: int, epoch: int, text: str) -> None:
        w.waiting["group_error"] = (number, time.monotonic())
        if self.broken_at == self.epoch or epoch < self.epoch:
            self._answer(w, "group_error", True)

    def _on_finished(self, w: Worker, number: int, step: int) -> None:
        w.waiting["finished"] = (number, step)
        if self.broken_at == self.epoch:
            self._answer(w, "finished", False)
            return
        seated = [s for s in self._seated() if "finished" in s.waiting]
        if len(seated) == self.world_size:
            for s in seated:
                self._answer(s, "finished", True)

    def _on_break(self, w: Worker, number: int) -> None:
        """Breaks the epoch though nobody died."""
        self._tell(w, ("reply", number, None))
        self._break()

    def _closed(self, w: Worker, number: int, epoch: int) -> bool:
        if epoch == self.epoch and self.broken_at != epoch:
            return False
        self._tell(w, ("reply", number, RuntimeError(f"epoch {epoch} is closed")))
        return True

    def _on_kv_set(self, w: Worker, number: int, epoch: int, key: str, value: bytes) -> None:
        if self._closed(w, number, epoch):
            return
        self.kv[key] = value
        self._tell(w, ("reply", number, None))
        for item in [g for g in self.gets if g[2] == key]:
            self.gets.remove(item)
            self._tell(item[0], ("reply", item[1], value))

    def _on_kv_get(self, w: Worker, number: int, epoch: int, key: str, timeout_s: float) -> None:
        if self._closed(w, number, epoch):
            return
        if key in self.kv:
            self._tell(w, ("reply", number, self.kv[key]))
        else:
            self.gets.append((w, number, key, time.monotonic() + timeout_s))

    def _on_kv_add(self, w: Worker, number: int, epoch: int, key: str, value: int) -> None:
        if not self._closed(w, number, epoch):
            total = int(self.kv.get(key, b"0")) + value
            self.kv[key] = str(total).encode()
            self._tell(w, ("reply", number, total))

    def _on_kv_check(self, w: Worker, number: int, epoch: int, keys: list[str]) -> None:
        if not self._closed(w, number, epoch):
            self._tell(w, ("reply", number, all(key in self.kv for key in keys)))

    def _on_kv_delete(self, w: Worker, number: int, epoch: int, key: str) -> None:
        if not self._closed(w, number, epoch):
            self._tell(w, ("reply", number, self.kv.pop(key, None) is not None))

    def _expire(self) -> None:
        now = time.monotonic()
        for item in [g for g in self.gets if g[3] < now]:
            self.gets.remove(item)
            self._tell(item[0], ("reply", item[1], RuntimeError(f"timed out waiting for {item[2]}")))
        for w in self._seated():
            if "group_error" in w.waiting and now - w.waiting["group_error"][1] > 5:
                self._answer(w, "group_error", False)

    def _end(self) -> None:
        for w in self.workers:
            if w.exit_status is None:
                signal.pidfd_send_signal(w.pidfd, signal.SIGKILL)
                os.waitpid(w.pid, 0)
                os.close(w.pidfd)
            while w.out >= 0:
                self._read(w)
            if w.connection is not None:
                w.connection.close()
        self.listener.close()
