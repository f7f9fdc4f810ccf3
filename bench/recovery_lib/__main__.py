"""bench/recovery: runs everything, prints the table and the promises, exits 1 where one is missed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check import Check, check_lines
from recovery_lib import table
from recovery_lib.bench import Results, blocks, run_blocks
from recovery_lib.cost import Cost, describe, measure_cost
from recovery_lib.launch import Stuck
from recovery_lib.limits import PROMISED_CASE, cost_check, naming_checks, time_checks
from recovery_lib.systems import SYSTEMS, Setting, install_ft_launcher

BUDGET_S = 19 * 60.0
BUDGET_FULL_S = 90 * 60.0


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/recovery", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path.cwd(), help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--full", action="store_true", help="more runs, also 2 and 8 ranks; at most 90 minutes")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="only these, with commas between")
    parser.add_argument("--cases", default="sleep50_1mb,demo")
    parser.add_argument("--faults", default="sigkill,sigstop,gil")
    parser.add_argument("--no-cost", action="store_true", help="leave out the cost of marks and snapshots")
    parser.add_argument("--json", default="", metavar="FILE", help="write the rows here")
    parser.add_argument("--keep", action="store_true", help="leave logs and reports in place")
    return parser.parse_args(argv)


def say(line: str) -> None:
    print(line, flush=True)


def cost_of(options: argparse.Namespace, folder: Path, results: Results) -> Cost | None:
    """None where it was not asked for or failed."""
    if options.no_cost or "holdfast" not in options.systems.split(","):
        return None
    say("cost a step of marks and snapshots ...")
    try:
        steps = 10_000 if options.full else 3_000
        cost = measure_cost(Setting(options.root, folder / "cost", "bare_1mb", 1), steps)
    except (Stuck, subprocess.TimeoutExpired) as error:
        results.failures.append(f"cost: {error}")
        return None
    say(f"    {describe(cost)}")
    return cost


def promises(results: Results, cost: Cost | None, ranks: int) -> list[Check]:
    """The times are promised for four ranks of the sleeping case; right names for every case."""
    checks = time_checks(results.rows, PROMISED_CASE) if ranks == 4 else []
    return checks + naming_checks(results.namings, PROMISED_CASE) + ([cost_check(cost.marks_us)] if cost else [])


def show(results: Results, cost: Cost | None, checks: list[Check]) -> None:
    for line in ["", *table.times(results.rows), "", *check_lines(checks)]:
        say(line)
    if cost:
        say(f"\n{describe(cost)}")
    for name in results.skipped:
        say(f"left out for want of time: {name}")
    for failure in results.failures:
        say(f"FAILED: {failure}")


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    options.root = options.root.resolve()
    systems = options.systems.split(",")
    began = time.monotonic()
    if "ft_launcher" in systems:
        install_ft_launcher(options.root, say)
    folder = Path(tempfile.mkdtemp(prefix="recovery-"))
    todo = blocks(options.full, options.ranks, systems, options.cases.split(","), options.faults.split(","))
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; logs in {folder}")
    until = began + (BUDGET_FULL_S if options.full else BUDGET_S)
    say(f"{len(todo)} blocks, about {sum(block.guess_s() for block in todo) / 60:.0f} minutes")
    results = run_blocks(todo, options.root, folder, until, say)
    cost = cost_of(options, folder, results)
    checks = promises(results, cost, options.ranks)
    show(results, cost, checks)
    say(f"took {(time.monotonic() - began) / 60:.1f} minutes")
    if options.json:
        rows = [row.json() for row in results.rows]
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    bad = bool(results.failures) or not all(check.holds for check in checks)
    if not options.keep and not bad:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what had been started was ended")
