"""One launch of a system: started, watched through what its ranks write, hit with faults, ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.demo.steplog import Line, log_path, parse_line
from recovery_lib.measure import ended_by_all, recovery_s
from recovery_lib.records import read_faults, read_processes
from recovery_lib.systems import COMMANDS, Setting, environment

POLL_S = 0.02
SIGNALS = {"sigkill": signal.SIGKILL, "sigstop": signal.SIGSTOP, "gil": signal.SIGUSR2}


class Stuck(Exception):
    """The system did not get to where it should in the time it had; the message ends with its output."""


class Launch:
    """Use with `with`: nothing it started is left alive after it."""

    def __init__(self, system: str, setting: Setting) -> None:
        self.system = system
        self.setting = setting
        self.logs: dict[int, list[Line]] = {rank: [] for rank in range(setting.ranks)}
        self.read: dict[int, int] = {}
        setting.folder.mkdir(parents=True)
        self.temporary = tempfile.TemporaryDirectory(prefix="bench-")  # short: sockets live in it
        with open(setting.folder / "output.log", "wb") as output:
            self.process = subprocess.Popen(
                COMMANDS[system](setting),
                env=environment(setting.root, Path(self.temporary.name)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Launch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def poll(self) -> None:
        """Reads the step logs' new lines."""
        for rank, lines in self.logs.items():
            path = log_path(self.setting.folder, rank)
            if not path.exists():
                continue
            with open(path, "rb") as file:
                file.seek(self.read.get(rank, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self.read[rank] = self.read.get(rank, 0) + len(whole)
            lines.extend(line for line in map(parse_line, whole.decode().splitlines()) if line)

    def wait(self, ready: Callable[[], bool], limit_s: float, what: str) -> None:
        """Until `ready`, which sees fresh logs."""
        end = time.monotonic() + limit_s
        while True:
            self.poll()
            if ready():
                return
            if self.process.poll() is not None:
                raise Stuck(f"{self.system} ended with code {self.process.returncode} while {what}:\n{self.tail()}")
            if time.monotonic() > end:
                raise Stuck(f"{self.system}: {limit_s:.0f} s were not enough for {what}:\n{self.tail()}")
            time.sleep(POLL_S)

    def advance(self, steps: int, limit_s: float) -> None:
        """Until all ranks have ended so many steps more."""
        self.poll()
        wanted = ended_by_all(self.logs) + steps
        self.wait(lambda: ended_by_all(self.logs) >= wanted, limit_s, f"{steps} more steps")

    def strike(self, fault: str, rank: int) -> int:
        """The fault's moment. A rank that blocks itself says its own, which is a step's length later at most."""
        before = len(read_faults(self.setting.folder))
        pid = read_processes(self.setting.folder, rank)[-1].pid
        now = time.monotonic_ns()
        os.kill(pid, SIGNALS[fault])
        if fault != "gil":
            return now
        self.wait(lambda: len(read_faults(self.setting.folder)) > before, 30, "the rank to block itself")
        return read_faults(self.setting.folder)[-1]

    def recover(self, fault_ns: int, victim: int, limit_s: float) -> float:
        """Seconds from the fault to the next new step of all ranks."""
        self.wait(lambda: recovery_s(self.logs, fault_ns, victim) is not None, limit_s, "the next step after a fault")
        seconds = recovery_s(self.logs, fault_ns, victim)
        assert seconds is not None
        return seconds

    def processes(self) -> dict[int, int]:
        """How many processes each rank has had."""
        return {rank: len(read_processes(self.setting.folder, rank)) for rank in range(self.setting.ranks)}

    def report(self) -> dict[str, Any]:
        """Ends the run and gives Holdfast's report of it."""
        self.end()
        path = self.setting.folder / "report.json"
        if not path.exists():
            raise Stuck(f"{self.system} left no report:\n{self.tail()}")
        report: dict[str, Any] = json.loads(path.read_text())
        return report

    def tail(self, lines: int = 15) -> str:
        text = (self.setting.folder / "output.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def end(self) -> None:
        """Asks the launcher to stop, kills it where it won't, then every rank that is left."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for rank in range(self.setting.ranks):
            for process in read_processes(self.setting.folder, rank):
                if self._is_ours(process.pid):
                    os.kill(process.pid, signal.SIGKILL)
        self.temporary.cleanup()

    def _is_ours(self, pid: int) -> bool:
        """Whether a living process is one of this launch's ranks: its command line names this folder."""
        try:
            return str(self.setting.folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
