"""Runs the training script under `holdfast run` in a folder of its own, and reads what it left there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.demo.schedule import Fault, checkpoint_interval, plan
from holdfast.demo.steplog import Line, log_path, parse_line, read_logs

STUCK_AFTER_S = 300.0  # no new step for so long: the run is ended, the demo fails
SPARES = 2  # two ranks are lost at once


class LaunchFailed(Exception):
    """The run could not be started or left no report; the message ends with its last output."""


@dataclass(frozen=True)
class Job:
    """What every run of one demo shares."""

    ranks: int
    steps: int
    train_seed: int = 1
    corpus: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one run left behind."""

    exit_code: int
    report: dict[str, Any]
    logs: dict[int, list[Line]]
    hashes: dict[int, str]

    def weights(self) -> str:
        """The one hash that all ranks ended with; "" where a rank has none or they differ."""
        values = set(self.hashes.values())
        return values.pop() if len(values) == 1 and len(self.hashes) == len(self.logs) else ""

    def step_s(self) -> float:
        """Median seconds from one step's end to the next, on rank 0."""
        lines = self.logs.get(0, [])
        gaps = [(b.at_ns - a.at_ns) / 1e9 for a, b in zip(lines, lines[1:], strict=False) if b.step == a.step + 1]
        return statistics.median(gaps) if gaps else 0.0


def find_launcher() -> str:
    """Path of the `holdfast` command: HOLDFAST_BINARY, this environment's, the build tree's, or the PATH's."""
    named = os.environ.get("HOLDFAST_BINARY")
    if named:
        return named
    for place in (Path(sys.prefix, "bin", "holdfast"), Path(sys.prefix).parent / "bin" / "holdfast"):
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("holdfast")
    if not found:
        raise LaunchFailed("no `holdfast` command found: run `make build`, or set HOLDFAST_BINARY to its path")
    return found


def command(launcher: str, job: Job, folder: Path, faults: Sequence[Fault]) -> list[str]:
    """The command line of one run."""
    words = [launcher, "run", "--standalone", f"--nproc-per-node={job.ranks}", f"--spares={SPARES}"]
    words += [f"--ckpt-dir={folder / 'checkpoints'}", f"--ckpt-every-steps={checkpoint_interval(job.steps)}"]
    words += [f"--report={folder / 'report.json'}", f"--log-dir={folder / 'logs'}", "--redirects=3"]
    words += [f"--preload=holdfast.demo.{module}" for module in ("corpus", "model", "steplog")]
    if faults:
        words.append(f"--faults={folder / 'faults.json'}")
    words += ["-m", "holdfast.demo.train", f"--steps={job.steps}", f"--seed={job.train_seed}", f"--out={folder}"]
    if job.corpus:
        words.append(f"--corpus={Path(job.corpus).resolve()}")
    return words


def run_job(
    launcher: str, job: Job, folder: Path, faults: Sequence[Fault], on_step: Callable[[int], None]
) -> Outcome:
    """Runs once, to the end; `on_step` hears the newest step a few times a second."""
    folder.mkdir(parents=True)
    (folder / "faults.json").write_text(json.dumps(plan(faults), indent=1))
    with open(folder / "launcher.log", "wb") as output:
        process = subprocess.Popen(
            command(launcher, job, folder, faults), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _watch(process, job, folder, on_step)
        finally:
            _end(process)
    report_path = folder / "report.json"
    if not report_path.exists():
        raise LaunchFailed(f"`holdfast run` ended with code {process.returncode} and no report:\n{last_lines(folder)}")
    hashes = {}
    for rank in range(job.ranks):
        final = folder / f"final-{rank}.json"
        if final.exists():
            hashes[rank] = str(json.loads(final.read_text())["weights"])
    return Outcome(process.returncode, json.loads(report_path.read_text()), read_logs(folder, job.ranks), hashes)


def last_lines(folder: Path, count: int = 25) -> str:
    """The end of what the launcher printed."""
    text = (folder / "launcher.log").read_text(errors="replace")
    return "\n".join(text.splitlines()[-count:])


def newest_step(folder: Path, ranks: int) -> int:
    """The highest last step in any rank's log, from each file's end alone; -1 before the first."""
    newest = -1
    for rank in range(ranks):
        path = log_path(folder, rank)
        if not path.exists():
            continue
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 200))
            lines = file.read().decode(errors="replace").splitlines()
        line = parse_line(lines[-1]) if lines else None
        newest = max(newest, line.step if line else -1)
    return newest


def _watch(process: subprocess.Popen[bytes], job: Job, folder: Path, on_step: Callable[[int], None]) -> None:
    newest, moved = -1, time.monotonic()
    while process.poll() is None:
        step = newest_step(folder, job.ranks)
        if step != newest:
            newest, moved = step, time.monotonic()
        if time.monotonic() - moved > STUCK_AFTER_S:
            raise LaunchFailed(f"no new step for {STUCK_AFTER_S:.0f} s after step {newest}:\n{last_lines(folder)}")
        on_step(newest)
        time.sleep(0.2)
    on_step(newest_step(folder, job.ranks))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing of a run that is given up may go on: the launcher takes its ranks along when it is asked or dies."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
