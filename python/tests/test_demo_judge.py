"""The demo's judge: it believes no report that misses, misnames, invents or pays."""

from typing import Any

from holdfast.demo.judge import bucket_gap, judge, redone_limit
from holdfast.demo.schedule import Fault


def record(verdict: str, culprit: list[int], step: int = 20, **more: Any) -> dict[str, Any]:
    one = {"verdict": verdict, "culprit": culprit, "step": step, "detect_s": 0.01, "next_step_s": 0.1}
    return one | more


def report(*records: dict[str, Any], answers: list[list[int]] | None = None, **more: Any) -> dict[str, Any]:
    """`answers`: for each planned fault the indices of its records; by default all are the first fault's."""
    whole: dict[str, Any] = {"exit_code": 0, "wall_s": 10.0, "steps": 100, "steps_lost": 0, "steps_redone": 0}
    whole["goodput"] = {"start": 1.0, "train": 9.0}
    lists = [list(range(len(records)))] if answers is None else answers
    whole["injected"] = [{"faults": indices} for indices in lists]
    return whole | {"faults": list(records)} | more


def wrongs(faults: list[Fault], whole: dict[str, Any]) -> list[str]:
    return list(judge(faults, whole, steps=100, interval=8).wrongs)


def test_a_fault_named_with_its_culprit_is_right() -> None:
    verdict = judge([Fault("sigstop", 20, (2,))], report(record("stopped", [2])), 100, 8)
    assert not verdict.wrongs
    assert verdict.faults[0].row() == {
        "kind": "sigstop",
        "found": True,
        "named": True,
        "culprit": [2],
        "detect_s": 0.01,
        "next_step_s": 0.1,
    }


def test_a_fault_without_a_record_is_missed() -> None:
    verdict = judge([Fault("gil", 20, (2,))], report(), 100, 8)
    assert not verdict.faults[0].found and not verdict.faults[0].named
    assert verdict.faults[0].detect_s is None
    assert "missed" in verdict.wrongs[0]


def test_the_wrong_verdict_is_misnamed() -> None:
    assert "named hung of [2]" in wrongs([Fault("gil", 20, (2,))], report(record("hung", [2])))[0]


def test_the_wrong_culprit_is_misnamed() -> None:
    assert "named hung of [0]" in wrongs([Fault("sleep", 20, (2,))], report(record("hung", [0])))[0]


def test_a_healthy_rank_blamed_besides_the_culprit_is_misnamed() -> None:
    both = report(record("killed", [2]), record("hung", [1]))
    assert "named killed+hung of [1, 2]" in wrongs([Fault("sigkill", 20, (2,))], both)[0]


def test_a_record_that_no_plan_explains_is_a_false_alarm() -> None:
    assert wrongs([], report(record("slow", [1]), answers=[])) == ["false alarm at step 20: slow of [1]"]


def test_two_ranks_at_once_may_be_one_record_or_two() -> None:
    fault = [Fault("two_at_once", 20, (1, 3))]
    assert not wrongs(fault, report(record("killed", [3, 1])))
    assert not wrongs(fault, report(record("killed", [3]), record("killed", [1])))
    assert "named killed of [3]" in wrongs(fault, report(record("killed", [3])))[0]


def test_faults_of_one_kind_are_told_apart() -> None:
    faults = [Fault("sigkill", 20, (2,)), Fault("sigkill_rank_0", 50, (0,))]
    records = [record("killed", [2], 20), record("killed", [0], 51)]
    assert not wrongs(faults, report(*records, answers=[[0], [1]]))
    missed = wrongs(faults, report(records[0], answers=[[0], []]))
    assert len(missed) == 1 and "SIGKILL of rank 0 at step 50" in missed[0] and "missed" in missed[0]


def test_a_missed_fault_does_not_take_a_later_ones_record() -> None:
    faults = [Fault("slow", 20, (2,)), Fault("sigkill", 50, (2,))]
    missed = wrongs(faults, report(record("killed", [2], 50), answers=[[0], [0]]))
    assert len(missed) == 1 and "slow rank" in missed[0] and "missed" in missed[0]


def test_a_flipped_byte_is_named_by_the_checkpoint_not_by_the_kills() -> None:
    fault = [Fault("flip_checkpoint", 30, (0, 1))]
    kills = record("killed", [0, 1], 30)
    assert not wrongs(fault, report(kills, record("checkpoint_damaged", [1], 24), answers=[[1]]))
    assert "named killed of [0, 1]" in wrongs(fault, report(kills, answers=[[]]))[0]
    late = record("killed", [0], 60)
    assert "false alarm at step 60" in wrongs(fault, report(record("checkpoint_damaged", [1]), late, answers=[[0]]))[0]


def test_the_longest_time_of_a_faults_records_counts() -> None:
    records = [
        record("killed", [1], detect_s=0.02, next_step_s=None),
        record("killed", [3], detect_s=0.01, next_step_s=0.3),
    ]
    one = judge([Fault("two_at_once", 20, (1, 3))], report(*records), 100, 8).faults[0]
    assert (one.detect_s, one.next_step_s) == (0.02, 0.3)


def test_a_lost_step_an_exit_code_and_a_short_run_are_wrong() -> None:
    assert wrongs([], report(steps_lost=1)) == ["1 steps lost"]
    assert "exit code 93" in wrongs([], report(exit_code=93))[0]
    assert "99 steps" in wrongs([], report(steps=99))[0]


def test_steps_redone_have_a_limit_by_the_kinds_of_recovery() -> None:
    faults = [Fault("sigkill", 1, (1,)), Fault("slow", 2, (1,)), Fault("flip_checkpoint", 3, (0, 1))]
    assert redone_limit(faults, interval=8) == 17
    assert "2 steps computed again, at most 1" in wrongs(
        [Fault("sigkill", 20, (1,))], report(record("killed", [1]), steps_redone=2)
    )[0]


def test_buckets_that_miss_the_wall_clock_are_wrong() -> None:
    assert bucket_gap(report()) == 0
    assert "miss the wall clock" in wrongs([], report(goodput={"train": 9.0}))[0]
