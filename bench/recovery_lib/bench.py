"""The benchmark's run: which system is hit how often with what, in which order, within which time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recovery_lib.launch import Launch, Stuck
from recovery_lib.limits import Naming
from recovery_lib.measure import Row, detected_s, restarts_beyond, step_s, wrong_culprits
from recovery_lib.systems import SYSTEMS, Setting

VERDICT = {"sigkill": "killed", "sigstop": "stopped", "gil": "gil_held"}
PEER_GROUP_TIMEOUT_S = 15.0
START_LIMIT_S = 300.0
RECOVERY_LIMIT_S = {"holdfast": 60.0, "torchrun": 180.0, "ft_launcher": 180.0}
SETTLE_STEPS = 8  # between a recovery and the next fault
GUESS_S = {"sigkill": 12.0, "sigstop": 70.0, "gil": 12.0}  # a peer's recovery and settling, for the time budget
GUESS_START_S = 15.0


@dataclass(frozen=True)
class Block:
    """Some faults of one kind, one after another in one launch."""

    system: str
    fault: str
    case: str
    runs: int
    ranks: int
    label: str = ""  # the case's name in the results where it is not just the case

    def guess_s(self) -> float:
        """About how long it takes."""
        if self.system == "holdfast":
            return 5.0 + 2.0 * self.runs
        return GUESS_START_S + GUESS_S[self.fault] * self.runs


@dataclass
class Results:
    """Everything measured so far."""

    rows: list[Row] = field(default_factory=list)
    namings: list[Naming] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def blocks(full: bool, ranks: int, systems: Sequence[str], cases: Sequence[str], faults: Sequence[str]) -> list[Block]:
    """What is measured, the most important first: what the time does not reach is left out."""
    return [
        block
        for block in _all_blocks(full, ranks)
        if block.system in systems and block.case in cases and block.fault in faults
    ]


def _all_blocks(full: bool, ranks: int) -> Iterator[Block]:
    kills, stops = (10, 5) if full else (5, 2)
    for case in ("sleep50_1mb", "demo"):
        for system in SYSTEMS:
            yield Block(system, "sigkill", case, 2 * kills if system == "holdfast" else kills, ranks)
    for case in ("sleep50_1mb", "demo"):
        yield Block("holdfast", "sigstop", case, kills, ranks)
        yield Block("holdfast", "gil", case, kills, ranks)
    yield Block("holdfast", "sigkill", "sleep50_1mb", 50, ranks, label="fifty")
    for case in ("sleep50_1mb", "demo"):
        for system in SYSTEMS[1:]:
            yield Block(system, "sigstop", case, stops, ranks)
    if full:
        for more in (2, 8):
            for system in SYSTEMS:
                yield Block(system, "sigkill", "sleep50_1mb", kills, more, label=f"sleep50_1mb_{more}_ranks")


def victim(run: int, ranks: int) -> int:
    """The last rank first, then rank 0 and the others in turn: the same for every system."""
    return (ranks - 1 + run) % ranks


def phase(run: int) -> float:
    """Where in a step the fault strikes, as a part of it: spread evenly over the runs, the same for every system."""
    return run * 0.6180339887 % 1


def run_blocks(
    todo: Sequence[Block], root: Path, folder: Path, until: float, say: Callable[[str], None]
) -> Results:
    """Runs all; `until` is the monotonic time at which no more is begun."""
    results = Results()
    for number, block in enumerate(todo):
        name = f"{block.label or block.case} {block.fault} {block.system}"
        left = until - time.monotonic()
        if block.system != "holdfast" and left < block.guess_s():
            results.skipped.append(name)
            say(f"[{number + 1}/{len(todo)}] {name}: left out, {left:.0f} s of the time are left")
            continue
        say(f"[{number + 1}/{len(todo)}] {name}: {block.runs} runs, {block.ranks} ranks ...")
        limit = PEER_GROUP_TIMEOUT_S if block.fault == "sigstop" and block.system != "holdfast" else 0.0
        setting = Setting(root, folder / f"{number}", block.case, block.ranks, limit)
        try:
            run_block(block, setting, results, say)
        except Stuck as stuck:
            results.failures.append(f"{name}: {stuck}")
            say(f"FAILED: {stuck}")
    return results


def run_block(block: Block, setting: Setting, results: Results, say: Callable[[str], None]) -> None:
    """One launch; adds a row, and for Holdfast what its report said."""
    seconds: list[float] = []
    victims = [victim(run, block.ranks) for run in range(block.runs)]
    try:
        with Launch(block.system, setting) as launch:
            launch.advance(SETTLE_STEPS + 1, START_LIMIT_S)
            for run, rank in enumerate(victims):
                time.sleep(phase(run) * step_s(launch.logs))
                moment = launch.strike(block.fault, rank)
                seconds.append(launch.recover(moment, rank, RECOVERY_LIMIT_S[block.system]))
                launch.advance(SETTLE_STEPS, START_LIMIT_S)
            beyond = _beyond(block, launch.processes(), victims)
            if block.system == "holdfast":
                results.namings.append(_naming(block, launch.report()["faults"], seconds, victims, beyond))
    finally:
        if seconds:
            row = Row(block.system, block.fault, block.label or block.case, tuple(seconds))
            results.rows.append(row)
            say(f"    min {min(seconds):.3f} median {row.median():.3f} max {max(seconds):.3f} s")
    if beyond:
        say(f"    {beyond} processes started beyond those that the faults called for")


def _beyond(block: Block, processes: dict[int, int], victims: Sequence[int]) -> int:
    """Peers start every rank anew at each fault; Holdfast only the victim."""
    if block.system == "holdfast":
        return restarts_beyond(processes, {rank: 1 + victims.count(rank) for rank in processes})
    return restarts_beyond(processes, {rank: 1 + len(victims) for rank in processes})


def _naming(
    block: Block, records: Sequence[dict[str, Any]], seconds: Sequence[float], victims: Sequence[int], beyond: int
) -> Naming:
    return Naming(
        fault=block.fault,
        case=block.label or block.case,
        struck=len(victims),
        wrong_culprits=wrong_culprits(records, victims, [VERDICT[block.fault]] * len(victims)),
        detect_s=detected_s(records, seconds),
        second_restarts=beyond,
    )
