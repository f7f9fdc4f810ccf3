"""When which fault strikes whom: a pure function of a seed, spaced so that each fault is over before the next."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

WARM_UP = 18  # steps before the first fault: start, first checkpoints, what a normal step takes
TAIL = 14  # steps after the last fault's slot
SLOT_MARGIN = 4  # steps a slot is longer than a checkpoint interval

# Slots a kind takes. A slow rank needs time to be told from chance; a checkpoint's fault waits for the next checkpoint.
SLOTS: Mapping[str, float] = {
    "sigkill": 1.0,
    "sigkill_rank_0": 1.0,
    "sigstop": 1.0,
    "sleep": 1.0,
    "gil": 1.0,
    "two_at_once": 1.0,
    "kill_in_recovery": 1.0,
    "slow": 3.0,
    "flip_checkpoint": 1.25,
    "disk_full": 1.25,
    "writer_crash": 1.25,
}
PLAN_KINDS: Mapping[str, str] = {"sigkill_rank_0": "sigkill", "two_at_once": "sigkill"}
TITLES: Mapping[str, str] = {
    "sigkill": "SIGKILL of a rank",
    "sigkill_rank_0": "SIGKILL of rank 0",
    "sigstop": "SIGSTOP of a rank",
    "sleep": "sleeps in a step for ever",
    "gil": "native loop holds the GIL",
    "two_at_once": "SIGKILL of two at once",
    "kill_in_recovery": "SIGKILL during recovery",
    "slow": "slow rank, stolen CPU",
    "flip_checkpoint": "flipped byte, full restart",
    "disk_full": "disk full at a checkpoint",
    "writer_crash": "crash in checkpoint writer",
}


@dataclass(frozen=True)
class Fault:
    """One planned fault. `ranks` are those it should be blamed on; `seconds` is how long a slow rank stays slow."""

    kind: str
    step: int
    ranks: tuple[int, ...]
    seconds: float = 0.0

    @property
    def plan_kind(self) -> str:
        return PLAN_KINDS.get(self.kind, self.kind)

    @property
    def title(self) -> str:
        return TITLES.get(self.kind, self.kind)

    def entry(self) -> dict[str, Any]:
        """This fault as `holdfast run --faults` reads it."""
        entry: dict[str, Any] = {"kind": self.plan_kind, "step": self.step}
        if len(self.ranks) == 1:
            entry["rank"] = self.ranks[0]
        else:
            entry["ranks"] = list(self.ranks)
        if self.seconds:
            entry["seconds"] = round(self.seconds, 3)
        return entry


def checkpoint_interval(steps: int) -> int:
    """Steps between checkpoints: often enough that a short run has many."""
    return max(3, min(8, steps // 30))


def steps_needed(ranks: int) -> int:
    """The fewest steps that leave room for every fault."""
    slots = sum(SLOTS[kind] for kind in kinds_for(ranks))
    steps = 100
    while (steps - WARM_UP - TAIL) / slots < checkpoint_interval(steps) + SLOT_MARGIN:
        steps += 2
    return steps


def kinds_for(ranks: int) -> list[str]:
    """Every kind; with two ranks none can be told to be slow, and two at once would leave nobody."""
    return [kind for kind in SLOTS if ranks > 2 or kind not in ("slow", "two_at_once")]


def schedule(seed: int, ranks: int, steps: int, step_s: float) -> list[Fault]:
    """All kinds in an order, at steps and on ranks that `seed` picks; `step_s` is what a step takes without faults.

    ValueError where the run has too few ranks or steps.
    """
    if ranks < 2:
        raise ValueError(f"the demo needs at least 2 ranks, not {ranks}: a lost rank's state comes from a peer")
    if steps < steps_needed(ranks):
        raise ValueError(f"{steps} steps are too few for every fault: at least {steps_needed(ranks)}, or give --faults")
    chance = random.Random(seed)
    order = _order(chance, kinds_for(ranks))
    interval = checkpoint_interval(steps)
    slot = (steps - WARM_UP - TAIL) / sum(SLOTS[kind] for kind in order)
    faults: list[Fault] = []
    begin = float(WARM_UP)
    for kind in order:
        step = int(begin) + chance.randint(0, max(0, int(slot) - interval - 1))
        if kind == "flip_checkpoint":
            step = _late_in_interval(int(begin), interval)
        # A rank with a tenth of a core makes steps several times longer: this is well over before the slot is.
        seconds = 2.0 * SLOTS[kind] * slot * step_s if kind == "slow" else 0.0
        faults.append(Fault(kind, step, _victims(chance, kind, ranks), seconds))
        begin += SLOTS[kind] * slot
    return faults


def _order(chance: random.Random, kinds: list[str]) -> list[str]:
    """A shuffle in which the newest two checkpoints before the flipped byte are good ones."""
    while True:
        order = chance.sample(kinds, len(kinds))
        flip = order.index("flip_checkpoint")
        if flip >= 2 and not {"disk_full", "writer_crash"} & set(order[flip - 1 : flip]):
            return order


def _late_in_interval(step: int, interval: int) -> int:
    """The next step shortly before a checkpoint is due, when the last one is surely on disk."""
    return step + (interval - 2 - step) % interval


def _victims(chance: random.Random, kind: str, ranks: int) -> tuple[int, ...]:
    if kind == "sigkill_rank_0":
        return (0,)
    if kind == "sigkill":
        return (chance.randrange(1, ranks),)
    if kind in ("two_at_once", "kill_in_recovery"):
        return tuple(chance.sample(range(ranks), 2))
    if kind == "flip_checkpoint":
        return tuple(range(ranks))
    return (chance.randrange(ranks),)


def plan(faults: Iterable[Fault]) -> dict[str, Any]:
    """The fault plan file's content."""
    return {"faults": [fault.entry() for fault in faults]}


def read_plan(content: Any, ranks: int) -> list[Fault]:
    """A fault plan somebody wrote, in step order; ValueError names the entry that is wrong."""
    entries = content.get("faults") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ValueError('a fault plan is {"faults": [{"kind": ..., "step": ..., "rank": ...}, ...]}')
    faults = []
    for index, entry in enumerate(entries):
        try:
            kind, step = str(entry["kind"]), int(entry["step"])
            named = entry["ranks"] if "ranks" in entry else [entry.get("rank", 0)]
            victims = tuple(range(ranks)) if kind == "flip_checkpoint" else tuple(int(rank) for rank in named)
            seconds = float(entry.get("seconds", 0.0))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"fault {index}: {error!r} in {entry}") from error
        if kind not in SLOTS or kind in PLAN_KINDS:
            known = ", ".join(kind for kind in SLOTS if kind not in PLAN_KINDS)
            raise ValueError(f"fault {index}: kind {kind!r} is none of {known}")
        if not victims or not all(0 <= rank < ranks for rank in victims):
            raise ValueError(f"fault {index}: ranks {list(victims)} are not within 0..{ranks - 1}")
        faults.append(Fault(kind, step, victims, seconds))
    return sorted(faults, key=lambda fault: fault.step)
