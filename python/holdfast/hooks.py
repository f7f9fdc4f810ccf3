"""Marks from inside a step, by hooks on the tracked optimizers and parameters.

GRADS_READY: the rank's own gradients are done; from here on it may be waiting for others. The first step shows which
parameter's gradient comes last; after it that parameter alone has a hook, for one per parameter would cost too much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from holdfast import marks
from holdfast.member import Member
from holdfast.tracked import Tracked

_LEARN_MAX = 3  # a model whose last gradient changes from step to step isn't worth following


class Hooks:
    """`before_optimizer` is called before the first optimizer of each step touches anything."""

    def __init__(self, member: Member, tracked: Tracked, before_optimizer: Callable[[], None]) -> None:
        self._member = member
        self._tracked = tracked
        self._before_optimizer = before_optimizer
        self._step: int | None = None
        self._handles: list[RemovableHandle] = []
        self._learning = False
        self._learned = 0
        self._last: torch.Tensor | None = None
        self._ready_seen = False
        self.began_in_step = False  # an optimizer has begun
        self.began = False  # the same, since the last commit
        self.gradients_pending = False  # a backward pass since the last optimizer step

    def install(self) -> None:
        for optimizer in self._tracked.optimizers():
            optimizer.register_step_pre_hook(self._before_step)
            optimizer.register_step_post_hook(self._after_step)
        self._learn()

    def begin(self, step: int) -> None:
        self._step = step
        self.began_in_step = False
        self._ready_seen = False

    def end(self) -> None:
        """The step went through."""
        self._step = None
        if self._learning and self._last is not None:
            self._keep_last()
        elif self.began_in_step and not self._ready_seen and self._learned < _LEARN_MAX:
            self._learn()

    def committed(self) -> None:
        """The state is one to which `Undo` leads back."""
        self._step = None
        self.began = False
        self.gradients_pending = False

    def _learn(self) -> None:
        self._remove()
        self._learning = True
        self._learned += 1
        self._last = None
        for parameter in self._tracked.parameters():
            if parameter.requires_grad and parameter.is_leaf:
                self._handles.append(_on_gradient(parameter, self._note))

    def _keep_last(self) -> None:
        assert self._last is not None
        self._remove()
        self._learning = False
        self._handles = [_on_gradient(self._last, self._ready)]
        self._last = None

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _note(self, parameter: torch.Tensor) -> None:
        self._last = parameter
        self.gradients_pending = True

    def _ready(self, parameter: torch.Tensor) -> None:
        self._ready_seen = True
        self.gradients_pending = True
        if self._step is not None:
            self._member.mark(marks.GRADS_READY, self._step)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._step is None or self.began_in_step:
            return
        self._before_optimizer()
        self._member.mark(marks.COLLECTED, self._step)
        self.began_in_step = self.began = True

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.gradients_pending = False
        if self._step is not None:
            self._member.mark(marks.APPLIED, self._step)


def _on_gradient(parameter: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> RemovableHandle:
    handle: RemovableHandle = parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
    return handle
