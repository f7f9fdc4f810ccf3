"""One step of the loop: a number, its batch, and the block in which it happens."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol


class StepOwner(Protocol):
    def begin(self, step: Step) -> None: ...
    def end(self, step: Step, error: BaseException | None) -> bool: ...


class Step(int):
    """The number of a step, counted from 0 over all epochs. `with step:` holds all that must happen once: where the
    group breaks inside, the block ends early, and the loop yields the same step with the same batch again."""

    batch: Any = None
    epoch: int = 0  # of the data
    completed: bool = False  # the block came to its end
    _owner: StepOwner

    def __new__(cls, number: int, owner: StepOwner) -> Step:
        step = super().__new__(cls, number)
        step._owner = owner
        return step

    @property
    def number(self) -> int:
        return int(self)

    def __enter__(self) -> Step:
        self._owner.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self._owner.end(self, error)
