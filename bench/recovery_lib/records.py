"""What trainers leave for the benchmark besides step logs: every process that was a rank, when a fault began."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process that began the script as some rank."""

    pid: int
    at_ns: int


def pids_path(folder: str | Path, rank: int) -> Path:
    return Path(folder, f"pids-{rank}.log")


def _append(path: Path, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    os.write(fd, text.encode())
    os.close(fd)


def note_process(folder: str | Path, rank: int) -> None:
    """Called first thing by a rank's process."""
    _append(pids_path(folder, rank), f"{os.getpid()} {time.monotonic_ns()}\n")


def read_processes(folder: str | Path, rank: int) -> list[Process]:
    """Oldest first; the last is the one that lives."""
    path = pids_path(folder, rank)
    lines = path.read_text().split("\n") if path.exists() else []
    return [Process(int(line.split()[0]), int(line.split()[1])) for line in lines[:-1]]


def fault_path(folder: str | Path) -> Path:
    return Path(folder, "fault_began.log")


def note_fault(folder: str | Path) -> None:
    """Called by a rank that is about to act out a fault on itself."""
    _append(fault_path(folder), f"{time.monotonic_ns()}\n")


def read_faults(folder: str | Path) -> list[int]:
    """Nanoseconds of every fault that a rank acted out."""
    path = fault_path(folder)
    return [int(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []
