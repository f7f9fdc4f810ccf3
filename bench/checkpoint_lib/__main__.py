"""bench/checkpoint: runs every system, prints the tables and the promises, exits 1 where one is missed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch.distributed as dist

from checkpoint_lib import table
from check import check_lines
from checkpoint_lib.promises import checks
from checkpoint_lib.rows import SAVE, STEP_TIME, Row, find

RANKS = 2
PROCESS_S_MAX = 600.0
THREADS = max(1, (os.cpu_count() or 1) // RANKS)  # a rank's
SYSTEMS = {SAVE: ("holdfast", "dcp_async", "dcp_async_reused"), STEP_TIME: ("holdfast", "dcp_async_reused")}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/checkpoint", description=__doc__)
    parser.add_argument("--gb", type=float, default=0.5, help="size of a rank's part of the state")
    parser.add_argument("--rounds", type=int, default=5, help="each runs every system of every case once")
    parser.add_argument("--saves", type=int, default=5, help="of a process; the first is shown apart")
    parser.add_argument("--case", action="append", choices=list(SYSTEMS), help="only this one; repeatable")
    parser.add_argument("--systems", default="", help="only those whose names begin so, with commas between")
    parser.add_argument("--folder", type=Path, help="where the checkpoints go; by default one under /tmp")
    parser.add_argument("--json", default="", metavar="FILE", help="write the rows here")
    return parser.parse_args(argv)


def say(line: str) -> None:
    print(line, flush=True)


def run_ranks(case: str, system: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What rank 0 printed. Errors: RuntimeError with a rank's last line."""
    os.sync()  # what others left to be written is not this system's
    store = dist.TCPStore("127.0.0.1", 0, RANKS, is_master=True, wait_for_workers=False)
    words = [sys.executable, "-m", "checkpoint_lib.worker", case, system, str(folder)]
    words += ["--gb", str(options.gb), "--saves", str(options.saves)]
    env = os.environ | {"WORLD_SIZE": str(RANKS), "MASTER_PORT": str(store.port), "GLOO_SOCKET_IFNAME": "lo"}
    env["OMP_NUM_THREADS"] = str(THREADS)
    ranks = [
        subprocess.Popen(words, env=env | {"RANK": str(rank)}, stdout=out, stderr=subprocess.PIPE, text=True)
        for rank, out in ((0, subprocess.PIPE), (1, subprocess.DEVNULL))
    ]
    try:
        texts = [rank.communicate(timeout=PROCESS_S_MAX) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    for rank, (_, errors) in zip(ranks, texts, strict=True):
        if rank.returncode != 0:
            lines = errors.strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"ended with code {rank.returncode}")
    result: dict[str, Any] = json.loads(texts[0][0].splitlines()[-1])
    return result


@dataclass
class Bench:
    options: argparse.Namespace
    folder: Path
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def systems(self, case: str) -> list[str]:
        starts = tuple(self.options.systems.split(",")) if self.options.systems else ("",)
        limits = [f"limit: memcpy_{threads}" for threads in sorted({1, THREADS})] if case == SAVE else []
        return limits + [each for each in SYSTEMS[case] if each.startswith(starts)]

    def round(self, case: str) -> None:
        for system in self.systems(case):
            place = self.folder / "checkpoints"
            place.mkdir()
            try:
                result = run_ranks(case, system, place, self.options)
                row = find(self.rows, case, system) or Row(case, system)
                row.add(result, RANKS)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                self.failures.append(f"{case}: {system}: {error}")
                continue
            finally:
                shutil.rmtree(place)
            if row not in self.rows:
                self.rows.append(row)


def run(bench: Bench) -> int:
    options = bench.options
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    say(f"{RANKS} ranks of {options.gb} GB and {THREADS} threads, {options.rounds} rounds of {options.saves} saves")
    for number in range(options.rounds):
        for case in options.case or SYSTEMS:
            bench.round(case)
        say(f"round {number + 1} done, load {os.getloadavg()[0]:.1f}")
    found = checks(bench.rows)
    for lines in (table.saves(bench.rows), table.steps(bench.rows), check_lines(found)):
        for line in ["", *lines]:
            say(line)
    say("")
    for failure in dict.fromkeys(bench.failures):
        say(f"FAILED: {failure}")
    if options.json:
        Path(options.json).write_text(json.dumps([row.json() for row in bench.rows], indent=1) + "\n")
    return 1 if bench.failures or not all(check.holds for check in found) else 0


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="bench-checkpoint-", dir=options.folder))
    try:
        code = run(Bench(options, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"took {(time.monotonic() - began) / 60:.1f} minutes")
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what had been started was ended")
