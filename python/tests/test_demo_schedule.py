"""The demo's schedule: every kind once, spaced, and a plan that the launcher can read."""

import pytest

from holdfast.demo.schedule import (
    SLOTS,
    TAIL,
    WARM_UP,
    Fault,
    checkpoint_interval,
    plan,
    read_plan,
    schedule,
    steps_needed,
)

SEEDS = range(200)


def test_every_kind_strikes_once_and_waits_for_the_one_before() -> None:
    interval = checkpoint_interval(240)
    for seed in SEEDS:
        faults = schedule(seed, ranks=4, steps=240, step_s=0.08)
        assert sorted(fault.kind for fault in faults) == sorted(SLOTS), seed
        steps = [fault.step for fault in faults]
        assert steps[0] >= WARM_UP and steps[-1] <= 240 - TAIL, seed
        assert min(b - a for a, b in zip(steps, steps[1:], strict=False)) > interval, seed


def test_a_flipped_byte_comes_late_in_an_interval_after_two_good_checkpoints() -> None:
    interval = checkpoint_interval(240)
    for seed in SEEDS:
        faults = schedule(seed, ranks=4, steps=240, step_s=0.08)
        flip = next(fault for fault in faults if fault.kind == "flip_checkpoint")
        assert flip.step % interval == interval - 2, seed
        before = [fault for fault in faults if fault.step < flip.step]
        assert len(before) >= 2, seed
        assert before[-1].kind not in ("disk_full", "writer_crash"), seed


def test_victims_are_ranks_of_the_run() -> None:
    counts = {"two_at_once": 2, "kill_in_recovery": 2, "flip_checkpoint": 3}
    for seed in SEEDS:
        for fault in schedule(seed, ranks=3, steps=240, step_s=0.08):
            assert set(fault.ranks) <= {0, 1, 2}, seed
            assert len(set(fault.ranks)) == len(fault.ranks) == counts.get(fault.kind, 1), seed


def test_the_same_seed_gives_the_same_schedule_and_another_gives_another() -> None:
    assert schedule(7, 4, 240, 0.1) == schedule(7, 4, 240, 0.1)
    assert schedule(7, 4, 240, 0.1) != schedule(8, 4, 240, 0.1)


def test_rank_0_is_killed_once_on_purpose_and_the_plain_kill_spares_it() -> None:
    for seed in SEEDS:
        by_kind = {fault.kind: fault for fault in schedule(seed, 4, 240, 0.1)}
        assert by_kind["sigkill_rank_0"].ranks == (0,)
        assert by_kind["sigkill"].ranks != (0,)


def test_a_slow_rank_is_slow_for_less_than_its_slot_takes_at_a_third_of_the_speed() -> None:
    for seed in SEEDS:
        faults = schedule(seed, 4, 240, 0.1)
        steps = [fault.step for fault in faults] + [240]
        index = [fault.kind for fault in faults].index("slow")
        assert faults[index].seconds < (steps[index + 1] - steps[index]) * 0.1 * 3
        assert faults[index].seconds > 3


def test_with_two_ranks_nobody_is_slow_and_never_are_both_killed() -> None:
    kinds = {fault.kind for fault in schedule(1, 2, 240, 0.1)}
    assert kinds == set(SLOTS) - {"slow", "two_at_once"}


def test_too_few_steps_or_ranks_are_refused() -> None:
    schedule(1, 4, steps_needed(4), 0.1)
    with pytest.raises(ValueError, match="at least"):
        schedule(1, 4, steps_needed(4) - 2, 0.1)
    with pytest.raises(ValueError, match="at least 2 ranks"):
        schedule(1, 1, 240, 0.1)


def test_the_plan_uses_the_launchers_words() -> None:
    content = plan(
        [Fault("sigkill_rank_0", 20, (0,)), Fault("two_at_once", 40, (1, 3)), Fault("slow", 60, (2,), 1.23456)]
    )
    assert content == {
        "faults": [
            {"kind": "sigkill", "step": 20, "rank": 0},
            {"kind": "sigkill", "step": 40, "ranks": [1, 3]},
            {"kind": "slow", "step": 60, "rank": 2, "seconds": 1.235},
        ]
    }


def test_a_plan_is_read_back_in_step_order() -> None:
    faults = read_plan(
        {"faults": [{"kind": "flip_checkpoint", "step": 50}, {"kind": "gil", "step": 9, "rank": 1}]}, ranks=2
    )
    assert faults == [Fault("gil", 9, (1,)), Fault("flip_checkpoint", 50, (0, 1))]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ([], "a fault plan is"),
        ({"faults": [{"step": 1}]}, "fault 0"),
        ({"faults": [{"kind": "sigkill", "step": 1, "rank": 4}]}, "not within 0..3"),
        ({"faults": [{"kind": "meteor", "step": 1}]}, "meteor"),
        ({"faults": [{"kind": "two_at_once", "step": 1}]}, "none of"),
        ({"faults": [{"kind": "sigkill", "step": "soon"}]}, "fault 0"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_entry_named(content: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_plan(content, ranks=4)
