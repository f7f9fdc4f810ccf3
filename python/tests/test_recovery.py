"""Real processes and real gloo groups, ranks killed for good: the end is that of a run without faults, bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture(scope="module")
def clean_states() -> dict[str, set[str]]:
    return {}


@pytest.fixture
def clean(play: Play, clean_states: dict[str, set[str]]) -> Callable[..., set[str]]:
    """The states at the end of a run without faults, run once for each command line."""

    def run(*argv: str) -> set[str]:
        key = " ".join(argv)
        if key not in clean_states:
            clean_states[key] = states(play(["train.py", *argv]))
        return clean_states[key]

    return run


def test_rank_0_is_a_rank_like_any_other(play: Play, clean: Callable[..., set[str]]) -> None:
    faulted = play(["train.py"], kills={0: f"{marks.GRADS_READY}:7"}, spares=1)
    assert states(faulted) == clean()


def test_two_ranks_at_once(play: Play, clean: Callable[..., set[str]]) -> None:
    faulted = play(["train.py"], kills={0: f"{marks.STEP_BEGIN}:3", 2: f"{marks.STEP_BEGIN}:3"})
    assert faulted.deaths == 2
    assert states(faulted) == clean()


@pytest.mark.parametrize("mark", [marks.GROUP_BEGIN, marks.GROUP_MADE, marks.RESTORE_BEGIN, marks.STEP_BEGIN])
def test_a_replacement_that_dies_is_replaced_too(play: Play, clean: Callable[..., set[str]], mark: int) -> None:
    faulted = play(["train.py"], kills={1: f"{marks.STEP_BEGIN}:3"}, replacement_kills={1: f"{mark}:3"})
    assert faulted.deaths == 2
    assert states(faulted) == clean()


def test_a_survivor_that_dies_while_it_gives_its_state(play: Play, clean: Callable[..., set[str]]) -> None:
    faulted = play(["train.py"], kills={1: f"{marks.STEP_BEGIN}:3", 0: f"{marks.RESTORE_BEGIN}:3"})
    assert faulted.deaths == 2
    assert states(faulted) == clean()


def test_a_rank_that_dies_at_the_very_end(play: Play, clean: Callable[..., set[str]]) -> None:
    faulted = play(["train.py"], kills={2: f"{marks.STEP_END}:15"})
    assert faulted.deaths == 1
    assert states(faulted) == clean()


def test_a_rank_that_is_a_step_ahead_leads_the_others(play: Play, clean: Callable[..., set[str]]) -> None:
    # the dead rank never answers the last sum of step 4, or just did: its peers may be at step 4 or at 5
    faulted = play(["train.py"], kills={1: f"{marks.COLLECTED}:4"})
    assert faulted.deaths == 1
    assert states(faulted) == clean()


def test_loader_workers_give_the_same_samples_again(play: Play, clean: Callable[..., set[str]]) -> None:
    faulted = play(["train.py", "--workers", "2"], kills={1: f"{marks.STEP_BEGIN}:10"})
    assert states(faulted) == clean("--workers", "2") == clean()


def test_a_stop_is_agreed_and_a_later_run_goes_on_from_its_checkpoint(
    play: Play, clean: Callable[..., set[str]], tmp_path: Path
) -> None:
    env = {"HOLDFAST_TEST_CHECKPOINTS": str(tmp_path), "HOLDFAST_TEST_BOUNDARY": "9=2"}
    stopped = play(["train.py"], env=env)
    assert set(stopped.exit_statuses.values()) == {0}
    assert all(text.count("step ") == 10 and "state" not in text for text in stopped.outputs.values())
    later = play(["train.py"], env=env | {"HOLDFAST_TEST_BOUNDARY": ""}, checkpoint=str(tmp_path / "10"))
    assert all(text.count("step ") == 6 for text in later.outputs.values())
    assert states(later) == clean()


def test_gradients_under_way_put_a_checkpoint_off(play: Play, clean: Callable[..., set[str]], tmp_path: Path) -> None:
    kind = ["--kind", "accumulate_over_steps"]
    env = {"HOLDFAST_TEST_CHECKPOINTS": str(tmp_path), "HOLDFAST_TEST_BOUNDARY": "6=1"}
    assert states(play(["train.py", *kind], env=env)) == clean(*kind)
    assert [path.name for path in tmp_path.iterdir() if path.name.isdigit()] == ["9"]


def test_many_faults_in_a_row_leave_no_descriptor_or_thread_behind(play: Play) -> None:
    result = play(["regroup.py", "--times", "200"])
    for text in result.outputs.values():
        counts = re.findall(r"^descriptors (\d+) threads (\d+)$", text, re.M)
        assert len(counts) == 2 and counts[0] == counts[1], text
