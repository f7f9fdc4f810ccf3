"""Nested state (what `state_dict()` gives) as a JSON text and named tensors, and back. No pickle, no code is run."""

from __future__ import annotations

import base64
import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from holdfast.elements import identity, storable

_Seen = dict[int, list[tuple[str, torch.Tensor]]]  # by address: the tensors that begin there, and their names
_TAG = "$"  # a JSON object with this key is not a dict but something that JSON can't say


@dataclass(frozen=True)
class Slice:
    """Where a part lies in the whole tensor."""

    shape: tuple[int, ...]  # of the whole
    begin: tuple[int, ...]  # of the part's first element
    replica: bool  # another rank, of a lower number, holds the same part


class Flat:
    """A state taken apart. The tensors are the live ones, not copies."""

    def __init__(self, structure: str, tensors: dict[str, torch.Tensor] | None = None) -> None:
        self._structure = structure
        self._node: Any = None  # what the structure is the JSON of, where nobody has asked for it yet
        self.tensors: dict[str, torch.Tensor] = {} if tensors is None else tensors
        self.slices: dict[str, Slice] = {}
        """Of those tensors that are this rank's part of a sharded one (a DTensor)."""

    @property
    def structure(self) -> str:
        self._structure = self.telling()()
        return self._structure

    def telling(self) -> Callable[[], str]:
        """What gives the structure later, without holding the tensors."""
        node, structure = self._node, self._structure
        return lambda: structure or json.dumps(node, separators=(",", ":"))

    def clone(self) -> Flat:
        return Flat(self.structure, {name: tensor.clone() for name, tensor in self.tensors.items()})


def flatten(value: Any, name: str = "") -> Flat:
    """Errors: TypeError, naming the place, for a value that can't be stored."""
    flat = Flat("")
    seen: _Seen = {}
    with torch.no_grad():  # a view that autograd is to know of takes many times as long
        node = _encode(value, name, flat.tensors, seen)
        for name, tensor in flat.tensors.items():
            if _is_sharded(tensor):
                flat.tensors[name], flat.slices[name] = _local_part(tensor)
    flat._node = node
    return flat


def unflatten(flat: Flat) -> Any:
    """The value again; its tensors are those of `flat`. Errors: ValueError for a structure that isn't ours."""
    return _decode(json.loads(flat.structure), flat.tensors)


def _encode(value: Any, path: str, tensors: dict[str, torch.Tensor], seen: _Seen) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, torch.Tensor):
        return {_TAG: "tensor", "name": _keep(value, path, tensors, seen)}
    if isinstance(value, dict):
        return _encode_dict(value, path, tensors, seen)
    if isinstance(value, list | tuple | set | frozenset | deque):
        ordered = sorted(value) if isinstance(value, set | frozenset) else value
        items = [_encode(item, f"{path}.{i}", tensors, seen) for i, item in enumerate(ordered)]
        kind = _sequence_kind(value)
        return items if kind == "list" else {_TAG: kind, "items": items}
    if isinstance(value, bytes | bytearray):
        return {_TAG: "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, complex):
        return {_TAG: "complex", "parts": [value.real, value.imag]}
    if isinstance(value, torch.dtype | torch.device):
        return {_TAG: type(value).__name__, "name": str(value).removeprefix("torch.")}
    if type(value).__module__ == "numpy":
        return _encode_numpy(value, path, tensors)
    if isinstance(value, bool | int | float | str):  # an enumeration or another subclass: its class would be lost
        raise TypeError(f"{path or 'state'}: a {type(value).__name__} can't be stored; use a plain {_plain(value)}")
    raise TypeError(f"{path or 'state'}: a {type(value).__module__}.{type(value).__name__} can't be stored")


def _plain(value: Any) -> str:
    return next(kind.__name__ for kind in (bool, int, float, str) if isinstance(value, kind))


def _sequence_kind(value: Any) -> str:
    for kind in (list, tuple, set, frozenset, deque):
        if isinstance(value, kind):
            return kind.__name__
    raise AssertionError


def _encode_dict(
    value: dict[Any, Any], path: str, tensors: dict[str, torch.Tensor], seen: _Seen
) -> Any:
    items = [(key, _encode(item, f"{path}.{key}" if path else str(key), tensors, seen)) for key, item in value.items()]
    kind = next((k.__name__ for k in (Counter, OrderedDict, defaultdict) if isinstance(value, k)), "dict")
    if kind == "dict" and _TAG not in value and all(type(key) is str for key in value):
        return dict(items)
    pairs = [[_encode(key, f"{path} (a key)", {}, {}), item] for key, item in items]
    if any(isinstance(key, dict) and key.get(_TAG) in ("tensor", "array") for key, _ in pairs):
        raise TypeError(f"{path or 'state'}: a tensor can't be a key")
    return {_TAG: "dict" if kind == "defaultdict" else kind, "items": pairs}


def _encode_numpy(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    import numpy

    if isinstance(value, numpy.generic):
        return {_TAG: "scalar", "dtype": value.dtype.str, "base64": base64.b64encode(value.tobytes()).decode()}
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc":
        data = torch.frombuffer(bytearray(value.tobytes()), dtype=torch.uint8) if value.size else torch.empty(0).byte()
        name = _unique(path, tensors)
        tensors[name] = data
        return {_TAG: "array", "name": name, "dtype": value.dtype.str, "shape": list(value.shape)}
    raise TypeError(f"{path or 'state'}: a {type(value).__name__} can't be stored")


def _keep(
    tensor: torch.Tensor, path: str, tensors: dict[str, torch.Tensor], seen: _Seen
) -> str:
    """The name under which `tensor` is kept; tied weights are kept once."""
    if tensor.layout != torch.strided or tensor.is_quantized or not storable(tensor.dtype):
        raise TypeError(f"{path or 'state'}: a tensor of {tensor.dtype}, {tensor.layout} can't be stored")
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and not _is_sharded(tensor):
        raise TypeError(f"{path or 'state'}: a {type(tensor).__name__} can't be stored")
    sharded = _is_sharded(tensor)
    local = _to_local(tensor) if sharded else tensor.detach()
    there = seen.setdefault(local.data_ptr(), []) if local.numel() else []
    for name, other in there:
        if identity(other) == identity(local):
            return name
    name = _unique(path, tensors)
    tensors[name] = tensor if sharded else local
    there.append((name, local))
    return name


def _is_sharded(tensor: torch.Tensor) -> bool:
    return type(tensor).__name__ == "DTensor"


def _to_local(tensor: Any) -> torch.Tensor:
    local: torch.Tensor = tensor.to_local()
    return local


def _local_part(tensor: Any) -> tuple[torch.Tensor, Slice]:
    return _to_local(tensor).detach(), _place(
        tensor.shape, tensor.placements, tensor.device_mesh, tuple(tensor.device_mesh.get_coordinate() or ())
    )


@lru_cache(maxsize=4096)
def _place(shape: torch.Size, placements: tuple[Any, ...], mesh: Any, at: tuple[int, ...]) -> Slice:
    """Of the part of the rank that is `at` there in the mesh. Many tensors have the same."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    if any(placement.is_partial() for placement in placements):
        raise TypeError("a DTensor whose sum is still to be taken (Partial) can't be stored; redistribute it")
    _, begin = compute_local_shape_and_global_offset(shape, mesh, placements)
    replica = any(isinstance(each, Replicate) and here != 0 for each, here in zip(placements, at, strict=True))
    return Slice(tuple(shape), tuple(begin), replica)


def _unique(path: str, tensors: dict[str, torch.Tensor]) -> str:
    name, count = path or "tensor", 1
    while name in tensors:
        count += 1
        name = f"{path or 'tensor'}~{count}"
    return name


def _decode(node: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(node, list):
        return [_decode(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node.get(_TAG)
    if kind is None:
        return {key: _decode(item, tensors) for key, item in node.items()}
    decode = _DECODERS.get(kind)
    if decode is None:
        raise ValueError(f"a state structure holds a {kind!r}, which this version does not know")
    return decode(node, tensors)


def _items(node: Any, tensors: dict[str, torch.Tensor]) -> list[Any]:
    return [_decode(item, tensors) for item in node["items"]]


def _pairs(node: Any, tensors: dict[str, torch.Tensor]) -> list[tuple[Any, Any]]:
    return [(_decode(key, tensors), _decode(item, tensors)) for key, item in node["items"]]


def _decode_array(node: Any, tensors: dict[str, torch.Tensor]) -> Any:
    import numpy

    data = bytes(tensors[node["name"]].cpu().tolist()) if tensors[node["name"]].numel() else b""
    return numpy.frombuffer(bytearray(data), dtype=node["dtype"]).reshape(node["shape"])


def _decode_scalar(node: Any, tensors: dict[str, torch.Tensor]) -> Any:
    import numpy

    return numpy.frombuffer(base64.b64decode(node["base64"]), dtype=node["dtype"])[0]


_DECODERS: dict[str, Any] = {
    "tensor": lambda node, tensors: tensors[node["name"]],
    "dict": lambda node, tensors: dict(_pairs(node, tensors)),
    "Counter": lambda node, tensors: Counter(dict(_pairs(node, tensors))),
    "OrderedDict": lambda node, tensors: OrderedDict(_pairs(node, tensors)),
    "tuple": lambda node, tensors: tuple(_items(node, tensors)),
    "set": lambda node, tensors: set(_items(node, tensors)),
    "frozenset": lambda node, tensors: frozenset(_items(node, tensors)),
    "deque": lambda node, tensors: deque(_items(node, tensors)),
    "bytes": lambda node, tensors: base64.b64decode(node["base64"]),
    "complex": lambda node, tensors: complex(*node["parts"]),
    "dtype": lambda node, tensors: getattr(torch, node["name"]),
    "device": lambda node, tensors: torch.device(node["name"]),
    "array": _decode_array,
    "scalar": _decode_scalar,
}
