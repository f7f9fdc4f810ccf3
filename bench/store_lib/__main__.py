"""bench/store: runs every case, prints the table and the promises, exits 1 where one is missed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from check import check_lines
from store_lib import peers, table
from store_lib.cases import CASES, LIMIT, Case, file_of
from store_lib.promises import checks
from store_lib.rows import Row, find
from store_lib.servers import Servers, serving

PROCESS_S_MAX = 600.0


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/store", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path.cwd(), help=argparse.SUPPRESS)
    parser.add_argument("--gb", type=float, default=2.0, help="size of the model")
    parser.add_argument("--rounds", type=int, default=5, help="each runs every system of every case once")
    parser.add_argument("--runs", type=int, default=4, help="loads or saves a process; the first is shown apart")
    names = [case.name for case in CASES]
    parser.add_argument("--case", action="append", choices=names, help="only this one; repeatable")
    parser.add_argument("--systems", default="", help="only those whose names begin so, with commas between")
    parser.add_argument("--folder", type=Path, help="where the files go; by default one under /tmp")
    parser.add_argument("--json", default="", metavar="FILE", help="write the rows here")
    return parser.parse_args(argv)


def say(line: str) -> None:
    print(line, flush=True)


@dataclass
class Bench:
    options: argparse.Namespace
    python: Path
    limits: Path
    folder: Path
    servers: Servers | None = None
    model_bytes: int = 0
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def call(self, words: list[str]) -> str:
        paths = [str(self.options.root / "bench"), str(self.options.root / "python")]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TOKENIZERS_PARALLELISM": "false"}
        env |= self.servers.environment if self.servers else {}
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PROCESS_S_MAX)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"ended with code {done.returncode}")
        return done.stdout

    def worker(self, what: str, system: str, path: Path, *more: str) -> dict[str, Any]:
        words = [str(self.python), "-m", "store_lib.worker", what, system, str(path), "--gb", str(self.options.gb)]
        result: dict[str, Any] = json.loads(self.call([*words, *more]).splitlines()[-1])
        return result

    def prepare(self, todo: list[tuple[Case, list[str]]]) -> None:
        """Writes what the cases load."""
        names = files_of(case_systems for case_systems in todo if not case_systems[0].saves)
        self.model_bytes = self.worker("prepare", ",".join(names or ["model.safetensors"]), self.folder)["bytes"]

    def measure(self, case: Case, system: str) -> dict[str, Any]:
        runs = str(self.options.runs)
        if case.over:
            assert self.servers is not None
            name = file_of(system)
            url = ["--url", self.servers.address(case.over, name), "--runs", runs]
            return self.worker("first" if case.first else "load", system, self.folder / name, *url)
        if system.startswith(LIMIT):
            path = self.folder / ("limit.new" if case.saves else file_of(system))
            what, threads = system.removeprefix(LIMIT).rsplit("_", 1)
            words = [str(self.limits), what, str(path), runs, threads]
            text = self.call([*words, str(self.model_bytes)] if case.saves else words)
            return {"runs": [json.loads(line) for line in text.splitlines()]}
        if case.saves:
            return self.worker("save", system, self.folder / "saved.new", "--runs", runs)
        cold = ["--cold"] if case.cold else []
        return self.worker("load", system, self.folder / file_of(system), "--runs", runs, *cold)

    def round(self, case: Case, systems: list[str]) -> None:
        for system in systems:
            try:
                result = self.measure(case, system)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                self.failures.append(f"{case.name}: {system}: {error}")
                continue
            row = find(self.rows, case.name, system)
            if row is None:
                row = Row(case.name, system)
                self.rows.append(row)
            row.add(result, result.get("bytes") or self.model_bytes)


def files_of(todo: Iterable[tuple[Case, list[str]]]) -> list[str]:
    return list(dict.fromkeys(file_of(system) for _, systems in todo for system in systems))


def chosen(options: argparse.Namespace) -> list[tuple[Case, list[str]]]:
    starts = tuple(options.systems.split(",")) if options.systems else ("",)
    cases = [case for case in CASES if not options.case or case.name in options.case]
    return [(case, [each for each in case.systems if each.startswith((LIMIT, *starts))]) for case in cases]


def measure_all(bench: Bench, todo: list[tuple[Case, list[str]]]) -> None:
    bench.prepare(todo)
    options = bench.options
    say(f"{bench.model_bytes} bytes, {options.rounds} rounds")
    served = files_of(case_systems for case_systems in todo if case_systems[0].over)
    with serving(options.root, bench.folder, served) if served else nullcontext() as bench.servers:
        for number in range(options.rounds):
            for case, systems in todo:
                first = number % len(systems)
                bench.round(case, systems[first:] + systems[:first])
            say(f"round {number + 1} done, load {os.getloadavg()[0]:.1f}")


def run(bench: Bench) -> int:
    options = bench.options
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; files in {bench.folder}")
    measure_all(bench, chosen(options))
    bench.rows.sort(key=lambda row: [case.name for case in CASES].index(row.case))
    found = checks(bench.rows, bench.model_bytes)
    for line in ["", *table.speeds(bench.rows), "", *check_lines(found), ""]:
        say(line)
    for failure in dict.fromkeys(bench.failures):
        say(f"FAILED: {failure}")
    if options.json:
        Path(options.json).write_text(json.dumps([row.json() for row in bench.rows], indent=1) + "\n")
    return 1 if bench.failures or not all(check.holds for check in found) else 0


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    options.root = options.root.resolve()
    began = time.monotonic()
    alone = all(system.startswith(("holdfast", LIMIT)) for _, systems in chosen(options) for system in systems)
    python = Path(sys.executable) if alone else peers.install(options.root, say)
    limits = peers.build_limits(options.root)
    folder = Path(tempfile.mkdtemp(prefix="bench-store-", dir=options.folder))
    try:
        code = run(Bench(options, python, limits, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"took {(time.monotonic() - began) / 60:.1f} minutes")
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what had been started was ended")
