"""Takes the tracked state back to the last boundary between steps, for a step that failed halfway.

Cheap by default: what a forward pass changes (buffers) and what Python objects say about themselves is copied at each
boundary; parameters are not, since no collective can fail once the optimizer has begun. Where one can (a script that
reduces its loss after the optimizer), `keep` copies everything before each optimizer step.
"""

from __future__ import annotations

from typing import Any

import torch

from holdfast.buffer_sync import buffer_places
from holdfast.state import Flat
from holdfast.tracked import Tracked


class Undo:
    def __init__(self, tracked: Tracked) -> None:
        self._tracked = tracked
        self._buffers = _Buffers(tracked)
        self._sentinels = [p for p in (next(m.parameters(), None) for m in tracked.modules()) if p is not None]
        self._sentinel_versions: list[int] = []
        self._small = {name: thing for name, thing in tracked.others().items() if not _has_tensors(thing.state_dict())}
        self._small_states: dict[str, Any] = {}
        self._hyperparameters: list[list[dict[str, Any]]] = []
        self._kept: Flat | None = None
        self._kept_is_valid = False
        self._had_gradients = False
        self._parameters = [p for p in tracked.parameters() if p.requires_grad]

    def commit(self) -> None:
        """From now on `back` leads here."""
        self._buffers.save()
        self._sentinel_versions = [p._version for p in self._sentinels]
        self._small_states = {name: _copied(thing.state_dict()) for name, thing in self._small.items()}
        self._hyperparameters = [
            [{key: _copied(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
            for optimizer in self._tracked.optimizers()
        ]
        self._kept_is_valid = False
        self._had_gradients = bool(self._parameters) and self._parameters[0].grad is not None

    def keep(self) -> None:
        """Copies everything; nothing but buffers has changed since `commit`."""
        flat = self._tracked.collect()
        kept = self._kept
        if kept is None or not _alike(kept, flat):
            self._kept = flat.clone()
        else:
            torch._foreach_copy_(list(kept.tensors.values()), list(flat.tensors.values()))
            kept.structure = flat.structure
        self._kept_is_valid = True

    def back(self, optimizer_began: bool) -> bool:
        """Whether the state is that of the last commit again."""
        moved = self._sentinel_versions != [p._version for p in self._sentinels]
        if optimizer_began or moved:
            if not self._kept_is_valid or self._kept is None:
                return False
            self._tracked.restore(self._kept.clone())
        self._buffers.restore()
        for name, thing in self._small.items():
            thing.load_state_dict(_copied(self._small_states[name]))
        for optimizer, groups in zip(self._tracked.optimizers(), self._hyperparameters, strict=True):
            for group, saved in zip(optimizer.param_groups, groups, strict=True):
                group.update({key: _copied(value) for key, value in saved.items()})
        self._drop_gradients()
        return True

    def _drop_gradients(self) -> None:
        for parameter in self._parameters:
            if parameter.grad is None:
                continue
            if self._had_gradients:
                parameter.grad.detach_().zero_()
            else:
                parameter.grad = None


class _Buffers:
    """The buffers that belong to the state; only those that changed since the last time are copied."""

    def __init__(self, tracked: Tracked) -> None:
        self._places = buffer_places(tracked.modules(), persistent=True)
        self._saved: list[torch.Tensor | None] = [None] * len(self._places)
        self._versions: list[tuple[int, int]] = [(0, -1)] * len(self._places)

    def save(self) -> None:
        targets, sources = [], []
        for i, (part, name) in enumerate(self._places):
            now = part._buffers[name]
            if now is None or self._versions[i] == (id(now), now._version):
                continue
            self._versions[i] = (id(now), now._version)
            saved = self._saved[i]
            if saved is None or saved.shape != now.shape or saved.dtype != now.dtype:
                self._saved[i] = now.detach().clone()
            else:
                targets.append(saved)
                sources.append(now.detach())
        if targets:
            torch._foreach_copy_(targets, sources)

    def restore(self) -> None:
        with torch.no_grad():
            for i, (part, name) in enumerate(self._places):
                now, saved = part._buffers[name], self._saved[i]
                if now is None or saved is None or self._versions[i] == (id(now), now._version):
                    continue
                if now.shape == saved.shape and now.dtype == saved.dtype:
                    now.copy_(saved)
                else:
                    part._buffers[name] = now = saved.clone()
                self._versions[i] = (id(now), now._version)


def _alike(one: Flat, other: Flat) -> bool:
    return one.tensors.keys() == other.tensors.keys() and all(
        one.tensors[name].shape == tensor.shape and one.tensors[name].dtype == tensor.dtype
        for name, tensor in other.tensors.items()
    )


def _has_tensors(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if isinstance(value, dict):
        return any(_has_tensors(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_has_tensors(item) for item in value)


def _copied(value: Any) -> Any:
    """`value` with containers and tensors of its own."""
    if type(value) in (int, float, str, bool) or value is None:
        return value
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        fresh = value.copy()
        for key, item in fresh.items():
            fresh[key] = _copied(item)
        return fresh
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
