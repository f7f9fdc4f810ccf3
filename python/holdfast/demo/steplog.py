"""What each rank did and when, a line a step: `step monotonic_ns loss`. The launcher's word is checked by it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One step that one rank ended."""

    step: int
    at_ns: int
    loss: str  # float.hex(): every bit


class StepLog:
    """Appends to this rank's file with one write a step: a killed rank leaves whole lines."""

    def __init__(self, folder: str, rank: int) -> None:
        self.fd = os.open(log_path(folder, rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def ended(self, step: int, loss: float) -> None:
        os.write(self.fd, f"{step} {time.monotonic_ns()} {float(loss).hex()}\n".encode())

    def close(self) -> None:
        os.close(self.fd)


def log_path(folder: str | Path, rank: int) -> Path:
    return Path(folder, f"steps-{rank}.log")


def parse_line(text: str) -> Line | None:
    """None for a line that is cut or foreign."""
    fields = text.split()
    if len(fields) != 3:
        return None
    try:
        float.fromhex(fields[2])
        return Line(int(fields[0]), int(fields[1]), fields[2])
    except ValueError:
        return None


def read_logs(folder: str | Path, ranks: int) -> dict[int, list[Line]]:
    """Each rank's lines in the order written; a rank without a file has none."""
    logs: dict[int, list[Line]] = {}
    for rank in range(ranks):
        path = log_path(folder, rank)
        texts = path.read_text().splitlines() if path.exists() else []
        logs[rank] = [line for line in map(parse_line, texts) if line]
    return logs


def steps_missing(logs: Mapping[int, Iterable[Line]], steps: int) -> list[int]:
    """Steps that no rank ever ended."""
    seen = {line.step for lines in logs.values() for line in lines}
    return [step for step in range(steps) if step not in seen]


def steps_differing(
    logs: Mapping[int, Iterable[Line]], reference: Mapping[int, Iterable[Line]]
) -> list[tuple[int, int]]:
    """(rank, step) whose loss, the first time or when computed again, is not the reference run's to the last bit."""
    wanted = {(rank, line.step): line.loss for rank, lines in reference.items() for line in lines}
    return sorted(
        {
            (rank, line.step)
            for rank, lines in logs.items()
            for line in lines
            if wanted.get((rank, line.step), line.loss) != line.loss
        }
    )
