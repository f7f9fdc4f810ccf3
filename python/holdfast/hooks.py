"""Marks from inside a step, by hooks on the tracked optimizers and parameters.

GRADS_READY: the rank's own gradients are done; from here on it may be waiting for others. The first step shows which
parameter's gradient comes last; after it that parameter alone has a hook, for one per parameter would cost too much.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.hooks import RemovableHandle

from holdfast._core import StepHooks
from holdfast.member import Member
from holdfast.tracked import Tracked

_LEARN_MAX = 3  # a model whose last gradient changes from step to step isn't worth following

BEGAN, PENDING, READY = StepHooks.BEGAN, StepHooks.PENDING, StepHooks.READY


class Hooks:
    """`before_optimizer` is called before the first optimizer of each step touches anything."""

    def __init__(self, member: Member, tracked: Tracked, before_optimizer: Callable[[], None]) -> None:
        self._tracked = tracked
        self._core = StepHooks(member.mark, before_optimizer)
        self._handles: list[RemovableHandle] = []
        self._learning = False
        self._learned = 0
        self._last: torch.Tensor | None = None
        self.begin = self._core.begin  # (step)
        self.boundary = self._core.boundary  # the state was put in place: whatever had begun is gone

    def install(self) -> None:
        for optimizer in self._tracked.optimizers():
            optimizer.register_step_pre_hook(self._core.before_step)
            optimizer.register_step_post_hook(self._core.after_step)
        self._learn()

    @property
    def began(self) -> bool:
        """An optimizer has begun since the last boundary to which `Undo` leads back."""
        return self._core.began

    def end(self) -> int:
        """The step went through: BEGAN, PENDING and READY, as they apply. Without PENDING it ends at a boundary."""
        happened = self._core.end()
        if self._learning and self._last is not None:
            self._keep_last()
        elif not happened & READY and happened & BEGAN and self._learned < _LEARN_MAX:
            self._learn()
        return happened

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
        self._handles = [_on_gradient(self._last, self._core.ready)]
        self._last = None

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _note(self, parameter: torch.Tensor) -> None:
        self._last = parameter
        self._core.gradients_pending = True


def _on_gradient(parameter: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> RemovableHandle:
    handle: RemovableHandle = parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
    return handle
