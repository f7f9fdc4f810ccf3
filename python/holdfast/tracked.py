"""What the user tracks: the state that every rank holds alike, that a replacement gets, that a checkpoint keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from holdfast import state


class Tracked:
    """Objects by name. Three kinds: modules, optimizers, and others with `state_dict` and `load_state_dict`."""

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}

    def add(self, name: str, thing: Any) -> None:
        if name in self._objects and self._objects[name] is not thing:
            raise ValueError(f"holdfast already tracks another {name!r}")
        if not callable(getattr(thing, "state_dict", None)) or not callable(getattr(thing, "load_state_dict", None)):
            raise TypeError(f"track {name!r}: a {type(thing).__name__} has no state_dict and load_state_dict")
        self._objects[name] = thing

    def modules(self) -> list[torch.nn.Module]:
        return [thing for thing in self._objects.values() if isinstance(thing, torch.nn.Module)]

    def optimizers(self) -> list[torch.optim.Optimizer]:
        return [thing for thing in self._objects.values() if isinstance(thing, torch.optim.Optimizer)]

    def others(self) -> dict[str, Any]:
        known = (torch.nn.Module, torch.optim.Optimizer)
        return {name: thing for name, thing in self._objects.items() if not isinstance(thing, known)}

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Each once, of all modules and optimizers."""
        seen: set[int] = set()
        for module in self.modules():
            for parameter in module.parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield parameter
        for optimizer in self.optimizers():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) not in seen:
                        seen.add(id(parameter))
                        yield parameter

    def collect(self) -> state.Flat:
        """The whole state; its tensors are the live ones. Errors: TypeError for what can't be stored."""
        return state.flatten({name: thing.state_dict() for name, thing in self._objects.items()})

    def restore(self, flat: state.Flat) -> None:
        """Puts a collected state in place, bit for bit. Errors: ValueError where it is of other things than these."""
        values = state.unflatten(flat)
        if set(values) != set(self._objects):
            raise ValueError(f"the state is of {sorted(values)}, this script tracks {sorted(self._objects)}")
        for name, thing in self._objects.items():
            thing.load_state_dict(values[name])
            if isinstance(thing, torch.optim.Optimizer):
                _restore_exactly(thing, values[name])


def _restore_exactly(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """torch casts an optimizer's state to its parameter's type when it loads; what was saved may be finer."""
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in zip(numbers, parameters, strict=True):
        for key, value in saved["state"].get(number, {}).items():
            now = optimizer.state[parameter].get(key)
            if isinstance(value, torch.Tensor) and isinstance(now, torch.Tensor):
                fresh = value.to(device=now.device, copy=True)
                optimizer.state[parameter][key] = fresh
