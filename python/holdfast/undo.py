"""Takes the tracked state back to the last boundary between steps, for a step that failed halfway.

Cheap by default: what a forward pass changes (buffers) and what Python objects say about themselves is copied at each
boundary; parameters are not, since no collective can fail once the optimizer has begun. Where one can (a script that
reduces its loss after the optimizer), `keep` copies everything before each optimizer step.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from holdfast.buffer_sync import buffer_places
from holdfast.state import Flat
from holdfast.tracked import Tracked


_version_of = operator.attrgetter("_version")


class Undo:
    def __init__(self, tracked: Tracked) -> None:
        self._tracked = tracked
        self._buffers = _Buffers(tracked)
        self._sentinels = [p for p in (next(m.parameters(), None) for m in tracked.modules()) if p is not None]
        self._sentinel_versions: list[int] = []
        self._small = {name: thing for name, thing in tracked.others().items() if not _has_tensors(thing.state_dict())}
        self._small_states: dict[str, Any] = {}
        self._hyperparameters = [_Hyperparameters(optimizer) for optimizer in tracked.optimizers()]
        self._kept: Flat | None = None
        self._kept_is_valid = False
        self._had_gradients = False
        self._parameters = [p for p in tracked.parameters() if p.requires_grad]

    def commit(self) -> None:
        """From now on `back` leads here."""
        if self._buffers.any:
            self._buffers.save()
        self._sentinel_versions = list(map(_version_of, self._sentinels))
        if self._small:
            self._small_states = {name: _copied(thing.state_dict()) for name, thing in self._small.items()}
        for hyperparameters in self._hyperparameters:
            hyperparameters.save()
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
            self._kept = Flat(flat.structure, kept.tensors)
        self._kept_is_valid = True

    def back(self, optimizer_began: bool) -> bool:
        """Whether the state is that of the last commit again."""
        moved = self._sentinel_versions != list(map(_version_of, self._sentinels))
        if optimizer_began or moved:
            if not self._kept_is_valid or self._kept is None:
                return False
            self._tracked.restore(self._kept.clone())
        self._buffers.restore()
        for name, thing in self._small.items():
            thing.load_state_dict(_copied(self._small_states[name]))
        for hyperparameters in self._hyperparameters:
            hyperparameters.restore()
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


class _Hyperparameters:
    """What the groups of an optimizer say beside their parameters. Most of it is the same object from step to step."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._seen: list[list[Any]] = []  # to tell whether anything has been put in place of anything
        self._saved: list[dict[str, Any]] = []
        self._fixed = False  # all of `_seen` are things that can't change by themselves

    def save(self) -> None:
        groups = self._optimizer.param_groups
        if self._fixed and len(groups) == len(self._seen):
            for group, seen in zip(groups, self._seen, strict=True):
                if len(group) != len(seen) or not all(map(operator.is_, group.values(), seen)):
                    break
            else:
                return
        self._seen = [list(group.values()) for group in groups]
        self._saved = [{key: _copied(value) for key, value in group.items() if key != "params"} for group in groups]
        self._fixed = all(_is_fixed(value) for group in self._saved for value in group.values())

    def restore(self) -> None:
        for group, saved in zip(self._optimizer.param_groups, self._saved, strict=True):
            group.update({key: _copied(value) for key, value in saved.items()})


def _is_fixed(value: Any) -> bool:
    if type(value) is tuple:
        return all(_is_fixed(item) for item in value)
    return value is None or type(value) in (int, float, complex, str, bool)


class _Buffers:
    """The buffers that belong to the state; those that don't change are copied once.

    A change shows in a tensor's version, but not always: batch norm's kernel writes its statistics without a word. So
    one changed buffer speaks for all of its module, and the first boundaries compare the values themselves.
    """

    _COMPARED_BOUNDARIES = 3

    def __init__(self, tracked: Tracked) -> None:
        by_module: dict[int, tuple[torch.nn.Module, list[str]]] = {}
        for module, name in buffer_places(tracked.modules(), persistent=True):
            by_module.setdefault(id(module), (module, []))[1].append(name)
        self._modules = [_ModuleBuffers(module, names) for module, names in by_module.values()]
        self.any = bool(self._modules)
        self._boundaries = 0

    def save(self) -> None:
        targets: list[torch.Tensor] = []
        sources: list[torch.Tensor] = []
        for module in self._modules:
            if module.changed(compare=self._boundaries < self._COMPARED_BOUNDARIES):
                module.save(targets, sources)
        self._boundaries += 1
        if targets:
            torch._foreach_copy_(targets, sources)

    def restore(self) -> None:
        for module in self._modules:
            module.restore()


class _ModuleBuffers:
    def __init__(self, module: torch.nn.Module, names: list[str]) -> None:
        self._module = module
        self._names = names
        self._saved: dict[str, torch.Tensor] = {}
        self._versions: list[tuple[int, int]] = []
        self._changes_silently = False

    def _now(self) -> list[torch.Tensor]:
        buffers = self._module._buffers
        return [b for b in (buffers[name] for name in self._names) if b is not None]

    def changed(self, compare: bool) -> bool:
        now = self._now()
        if self._changes_silently or self._versions != [(id(b), b._version) for b in now]:
            return True
        if compare and any(not torch.equal(self._saved[n], b) for n, b in zip(self._names, now, strict=True)):
            self._changes_silently = True
        return self._changes_silently

    def save(self, targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
        """Copies what has to be made anew; appends the rest for one call that copies all."""
        now = self._now()
        self._versions = [(id(b), b._version) for b in now]
        for name, buffer in zip(self._names, now, strict=True):
            saved = self._saved.get(name)
            if saved is None or saved.shape != buffer.shape or saved.dtype != buffer.dtype:
                self._saved[name] = buffer.detach().clone()
            else:
                targets.append(saved)
                sources.append(buffer.detach())

    @torch.no_grad()
    def restore(self) -> None:
        for name, saved in self._saved.items():
            now = self._module._buffers[name]
            if now is not None and now.shape == saved.shape and now.dtype == saved.dtype:
                now.copy_(saved)
            else:
                self._module._buffers[name] = saved.clone()
        self._versions = [(id(b), b._version) for b in self._now()]


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
    if _is_fixed(value):
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
