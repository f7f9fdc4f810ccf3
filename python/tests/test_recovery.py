"""Real processes and real gloo groups, ranks killed for good: the end is that of a run without faults, bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from fake_run import Result

from holdfast import marks

Play = Callable[..., Result]
KINDS = [
    "plain",
    "batch_norm",
    "zero_at_end",
    "accumulate",
    "accumulate_over_steps",
    "late_collective",
    "compile",
]


def states(result: Result) -> set[str]:
    found = {re.findall(r"^state (\w+)$", text, re.M)[-1] for text in result.outputs.values() if "state " in text}
    assert all("state " in text for text in result.outputs.values()), "\n".join(result.all_outputs)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_rank_leaves_no_trace_in_the_result(play: Play, kind: str) -> None:
    clean = play(["train.py", "--kind", kind])
    assert len(states(clean)) == 1
    assert clean.epochs == 0
    kill = f"{marks.APPLIED if kind == 'late_collective' else marks.STEP_BEGIN}:5"
    faulted = play(["train.py", "--kind", kind], kills={1: kill}, spares=1)
    assert faulted.deaths == 1
    assert faulted.epochs == 1
    assert states(faulted) == states(clean)
