"""What `holdfast demo` does: the same training without faults and with them, then everything compared."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.demo import table
from holdfast.demo.judge import Verdict, judge
from holdfast.demo.launch import Job, LaunchFailed, Outcome, find_launcher, run_job
from holdfast.demo.schedule import Fault, checkpoint_interval, read_plan, schedule, steps_needed
from holdfast.demo.steplog import steps_differing, steps_missing

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="holdfast demo", description=__doc__)
    parser.add_argument("--ranks", type=int, default=4, help="data-parallel ranks (4)")
    parser.add_argument("--steps", type=int, default=240, help="training steps, an even number (240)")
    parser.add_argument("--faults", default="", metavar="FILE", help="a fault plan of your own instead of --seed's")
    parser.add_argument("--seed", type=int, default=1, help="picks when each fault strikes which rank (1)")
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds in a row after one fault-free run (1)")
    parser.add_argument("--json", default="", metavar="FILE", help="write the report here")
    parser.add_argument("--corpus", default="", metavar="FILE", help="train on this text instead of Shakespeare")
    parser.add_argument("--keep", default="", metavar="DIR", help="leave reports, logs and checkpoints in DIR")
    return parser.parse_args(argv)


def say(line: str = "") -> None:
    print(line, flush=True)


def shower(what: str, steps: int, faults: Sequence[Fault]) -> Callable[[int], None]:
    """Shows a run's progress: one line kept fresh on a terminal, else a line every five seconds."""
    began, shown = time.monotonic(), [-5.0]

    def show(step: int) -> None:
        seconds = time.monotonic() - began
        struck = [fault for fault in faults if fault.step <= step]
        line = table.progress(what, step, steps, seconds, struck)
        if sys.stdout.isatty():
            print(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        elif seconds - shown[0] >= 5.0:
            shown[0] = seconds
            say(line)

    return show


def result(fault_free: Outcome, faulted: Outcome, verdict: Verdict) -> dict[str, Any]:
    """The demo's JSON for one seed."""
    report = faulted.report
    return {
        "weights_identical": bool(faulted.weights()) and faulted.weights() == fault_free.weights(),
        "hash_fault_free": fault_free.weights(),
        "hash_faulted": faulted.weights(),
        "steps_lost": report["steps_lost"],
        "steps_redone": report["steps_redone"],
        "wall_s": report["wall_s"],
        "ettr": report["ettr"],
        "goodput": report["goodput"],
        "faults": [one.row() for one in verdict.faults],
    }


def all_wrongs(job: Job, fault_free: Outcome, faulted: Outcome, verdict: Verdict) -> list[str]:
    """The judge's list, and what the ranks' own logs and weights say."""
    wrongs = list(verdict.wrongs)
    missing = steps_missing(faulted.logs, job.steps)
    if missing:
        wrongs.append(f"no rank ever ended steps {missing[:10]}")
    differing = steps_differing(faulted.logs, fault_free.logs)
    if differing:
        rank, step = min(differing, key=lambda pair: pair[1])
        where = f"the first at step {step} on rank {rank}"
        wrongs.append(f"{len(differing)} losses differ from the fault-free run's, {where}")
    if not faulted.weights() or faulted.weights() != fault_free.weights():
        wrongs.append("the final weights are not those of the fault-free run")
    return wrongs


def check_fault_free(job: Job, outcome: Outcome) -> list[str]:
    wrongs = list(judge([], outcome.report, job.steps, checkpoint_interval(job.steps)).wrongs)
    if not outcome.weights():
        wrongs.append(f"the ranks' final weights differ or are missing: {outcome.hashes}")
    return [f"fault-free run: {wrong}" for wrong in wrongs]


def demo(options: argparse.Namespace, folder: Path) -> int:
    """Runs everything below `folder`. Exit code 0 only if nothing at all was wrong."""
    job = Job(options.ranks, options.steps, corpus=options.corpus)
    launcher = find_launcher()
    own = read_plan(json.loads(Path(options.faults).read_text()), job.ranks) if options.faults else None
    say(f"Training a Llama-style decoder on Shakespeare: {job.ranks} ranks, {job.steps} steps.")
    fault_free = run_job(launcher, job, folder / "fault-free", [], shower("without faults", job.steps, []))
    step_s = fault_free.step_s()
    say(f"\nwithout faults: {fault_free.report['wall_s']:.1f} s, {step_s * 1e3:.0f} ms a step")
    wrongs = check_fault_free(job, fault_free)
    for wrong in wrongs:
        say(f"WRONG: {wrong}")
    if wrongs:
        return EXIT_FAILED  # there is nothing to compare with
    results = []
    for seed in range(options.seed, options.seed + options.seeds):
        faults = own if own is not None else schedule(seed, job.ranks, job.steps, step_s)
        name = "with faults" if options.seeds == 1 else f"seed {seed}"
        place = folder / f"seed-{seed}"
        faulted = run_job(launcher, job, place, faults, shower(name, job.steps, faults))
        verdict = judge(faults, faulted.report, job.steps, checkpoint_interval(job.steps))
        bad = all_wrongs(job, fault_free, faulted, verdict)
        results.append(result(fault_free, faulted, verdict))
        say()
        show_result(job, name, results[-1], verdict, faulted, short=options.seeds > 1 and not bad)
        for wrong in bad:
            say(f"WRONG: {name}: {wrong}")
        wrongs += bad
        if not bad and not options.keep:
            shutil.rmtree(place)
    if options.json:
        Path(options.json).write_text(json.dumps(merged(results), indent=1) + "\n")
    say("Every fault was found, rightly named, and cost no step." if not wrongs else f"Things wrong: {len(wrongs)}.")
    return EXIT_FAILED if wrongs else EXIT_DONE


def show_result(
    job: Job, name: str, one: dict[str, Any], verdict: Verdict, faulted: Outcome, short: bool
) -> None:
    if short:
        say(
            f"{name}: {len(verdict.faults)} faults found and named, {one['steps_lost']} steps lost, "
            f"{one['steps_redone']} computed again, ETTR {one['ettr']:.3f}, {one['wall_s']:.1f} s, weights identical"
        )
        return
    lines = table.fault_table(verdict.faults) + [""] + table.accounts(faulted.report, job.steps)
    for line in lines + table.weights(one["hash_fault_free"], one["hash_faulted"]):
        say(line)


def merged(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One seed's result as it is; of several the same keys for all together, and each below `seeds`."""
    if len(results) == 1:
        return results[0]
    unlike = [one for one in results if not one["weights_identical"]]
    buckets = sorted({bucket for one in results for bucket in one["goodput"]})
    return {
        "weights_identical": not unlike,
        "hash_fault_free": results[0]["hash_fault_free"],
        "hash_faulted": (unlike or results)[0]["hash_faulted"],
        "steps_lost": sum(one["steps_lost"] for one in results),
        "steps_redone": sum(one["steps_redone"] for one in results),
        "wall_s": sum(one["wall_s"] for one in results),
        "ettr": min(one["ettr"] for one in results),
        "goodput": {bucket: sum(one["goodput"].get(bucket, 0.0) for one in results) for bucket in buckets},
        "faults": [fault for one in results for fault in one["faults"]],
        "seeds": list(results),
    }


def usage_error(options: argparse.Namespace) -> str:
    """What can't be done as asked; "" if all can."""
    if options.ranks < 2:
        return f"--ranks {options.ranks}: at least 2, a lost rank's state comes from a peer"
    if options.steps < 2 or options.steps % 2:
        return f"--steps {options.steps}: an even number, the demo trains two epochs"
    if options.seeds < 1:
        return f"--seeds {options.seeds}: at least 1"
    if not options.faults and options.steps < steps_needed(options.ranks):
        return f"--steps {options.steps}: at least {steps_needed(options.ranks)} to fit every fault, or give --faults"
    return ""


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    problem = usage_error(options)
    if problem:
        print(f"holdfast demo: {problem}", file=sys.stderr)
        return EXIT_USAGE
    folder = Path(options.keep) if options.keep else Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        code = demo(options, folder)
    except (LaunchFailed, ValueError, OSError) as error:
        print(f"\nholdfast demo: {error}", file=sys.stderr)
        code = EXIT_FAILED
    except KeyboardInterrupt:
        print("\nholdfast demo: interrupted; the run under way was ended", file=sys.stderr)
        code = EXIT_INTERRUPTED
    if code == EXIT_DONE and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    elif code != EXIT_DONE and folder.exists():
        say(f"Reports and logs are in {folder}")
    return code
