"""Starts the real `holdfast run` for a test, and looks at what is alive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
PATIENCE_S = 180.0  # for what should take seconds: the machine may be busy


def binary() -> str:
    return os.environ.get("HOLDFAST_BINARY", str(ROOT / "build" / "bin" / "holdfast"))


@dataclass
class Launch:
    """One `holdfast run`, its output in a file. Everything it starts works in `folder`, and shows it by that."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    report_path: Path

    def wait(self) -> int:
        return self.process.wait(timeout=PATIENCE_S)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.report_path.read_text())
        return report

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until the output holds `text`."""
        deadline = time.monotonic() + PATIENCE_S
        while self.output().count(text) < times:
            assert self.process.poll() is None, f"ended before {text!r}:\n{self.output()}"
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.output()}"
            time.sleep(0.02)

    def alive(self) -> list[int]:
        """Processes of this launch, however deep, zombies left out."""
        return [pid for pid in pids() if working_folder(pid) == str(self.folder) and state(pid) not in "ZX"]

    def rank_pid(self, rank: int) -> int:
        """The process that is `rank` now, by its title in `ps`."""
        for pid in self.alive():
            if command_line(pid).startswith(f"holdfast rank {rank}/"):
                return pid
        raise AssertionError(f"no process is rank {rank}: {[command_line(pid) for pid in self.alive()]}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        """Leaves nothing behind, whatever the test did."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def start(folder: Path, *words: str, env: dict[str, str] | None = None) -> Launch:
    log, report = folder / "launch.log", folder / "report.json"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [binary(), "run", f"--report={report}", *words],
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "HOLDFAST_PYTHON": sys.executable, **(env or {})},
        )
    return Launch(process, folder, log, report)


def run(folder: Path, *words: str, env: dict[str, str] | None = None) -> Launch:
    """To its end."""
    launch = start(folder, *words, env=env)
    try:
        launch.wait()
    finally:
        launch.end()
    return launch


def pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())


def _read(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def working_folder(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def command_line(pid: int) -> str:
    return _read(pid, "cmdline").strip()


def state(pid: int) -> str:
    text = _read(pid, "stat")
    return text.rpartition(")")[2].split()[0] if text else "X"
