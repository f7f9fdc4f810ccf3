"""The hooks of a step: what they mark, what they tell at its end, and what they make of wrong arguments."""

from __future__ import annotations

import pytest

from holdfast import marks
from holdfast._core import Member, StepHooks


class Noted:
    def __init__(self) -> None:
        self.marks: list[tuple[int, int]] = []
        self.begun = 0
        self.hooks = StepHooks(lambda mark, step: self.marks.append((mark, step)), self.begin)

    def begin(self) -> None:
        self.begun += 1

    def optimizer(self) -> None:
        self.hooks.before_step(None, (), {})
        self.hooks.after_step(None, (), {})


def test_a_step_is_marked_once_however_many_optimizers_it_has() -> None:
    noted = Noted()
    noted.hooks.begin(7)
    noted.hooks.ready(None)
    noted.optimizer()
    noted.optimizer()
    assert noted.begun == 1
    assert noted.hooks.end() == StepHooks.BEGAN | StepHooks.READY
    assert [mark for mark, _ in noted.marks] == [marks.GRADS_READY, marks.COLLECTED, marks.APPLIED, marks.APPLIED]
    assert {step for _, step in noted.marks} == {7}


def test_gradients_without_an_optimizer_are_pending_until_one_comes() -> None:
    noted = Noted()
    noted.hooks.begin(0)
    noted.optimizer()
    noted.hooks.ready(None)
    assert noted.hooks.end() == StepHooks.BEGAN | StepHooks.PENDING | StepHooks.READY
    assert noted.hooks.began
    noted.hooks.begin(1)
    noted.optimizer()
    assert noted.hooks.end() == StepHooks.BEGAN
    assert not noted.hooks.began


def test_outside_of_a_step_nothing_is_marked() -> None:
    noted = Noted()
    noted.hooks.ready(None)
    noted.optimizer()
    assert noted.marks == [] and noted.begun == 0


def test_an_error_before_the_optimizer_is_the_callers() -> None:
    def refuse() -> None:
        raise ZeroDivisionError("first")

    hooks = StepHooks(lambda mark, step: None, refuse)
    hooks.begin(0)
    with pytest.raises(ZeroDivisionError, match="first"):
        hooks.before_step(None, (), {})
    assert hooks.end() == 0


def test_wrong_arguments_are_errors_of_python() -> None:
    hooks = Noted().hooks
    with pytest.raises(TypeError, match="takes 1 arguments, not 0"):
        hooks.begin()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        hooks.begin("seven")  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        hooks.begin(2**70)
    with pytest.raises(RuntimeError, match="__init__ did not run"):
        StepHooks.__new__(StepHooks).begin(1)
    with pytest.raises(TypeError):
        Member.mark(hooks, 1, 2)  # type: ignore[arg-type]
