"""The tensors of a file one by one, usable as they arrive.

    with holdfast.stream("model.safetensors") as arriving:
        for name, tensor in arriving:
            model[name].copy_(tensor)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType

import torch

from holdfast import tensors
from holdfast._core import Stream
from holdfast.keys import Key, key_bytes

WINDOW_BYTES = 64 << 20


class TensorStream:
    """An iterator of (name, tensor). Reading goes on ahead on a native thread until `close`, the end of a `with` block
    or of this object."""

    def __init__(
        self, path: str, names: list[str] | None, window_bytes: int, checksums: bool, key: bytes | None
    ) -> None:
        self._stream = tensors.with_stored_names(
            path, names, key, lambda stored: Stream(path, stored, window_bytes, checksums, key)
        )
        aliases = tensors.aliases_of(path, self._stream.metadata())
        arriving = _arriving(path, self._stream)
        # Of these none may refer to this object, which then ended late.
        self._tensors = _all(arriving, aliases) if names is None else _asked(arriving, aliases, names)

    def __iter__(self) -> TensorStream:
        return self

    def __next__(self) -> tuple[str, torch.Tensor]:
        return next(self._tensors)

    def __enter__(self) -> TensorStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the reading; tensors that were handed out stay valid."""
        self._stream.stop()


def _arriving(path: str, source: Stream) -> Iterator[tuple[str, torch.Tensor]]:
    """Those that are stored, by the names under which they are."""
    while arrived := source.next():
        place, block = arrived
        data = torch.frombuffer(block, dtype=torch.uint8) if place[4] else torch.empty(0, dtype=torch.uint8)
        try:
            yield place[0], tensors.view(data, 0, place)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _all(
    arriving: Iterator[tuple[str, torch.Tensor]], aliases: Mapping[str, str]
) -> Iterator[tuple[str, torch.Tensor]]:
    second_names: dict[str, list[str]] = {}
    for alias, name in aliases.items():
        second_names.setdefault(name, []).append(alias)
    for name, tensor in arriving:
        yield name, tensor
        for alias in second_names.get(name, ()):
            yield alias, tensor.view_as(tensor)


def _asked(
    arriving: Iterator[tuple[str, torch.Tensor]], aliases: Mapping[str, str], names: list[str]
) -> Iterator[tuple[str, torch.Tensor]]:
    stored = [aliases.get(name, name) for name in names]
    left = Counter(stored)
    held: dict[str, torch.Tensor] = {}  # those that come again by another name
    for name, under in zip(names, stored, strict=True):
        if under in held:
            tensor = held[under].view_as(held[under])
        else:
            arrived = next(arriving, None)
            if arrived is None:
                return
            tensor = arrived[1]
        left[under] -= 1
        if left[under]:
            held[under] = tensor
        else:
            held.pop(under, None)
        yield name, tensor


def stream(
    path: tensors.Path,
    names: Iterable[str] | None = None,
    *,
    window_bytes: int = WINDOW_BYTES,
    checksums: bool = True,
    key: Key | bytes | None = None,
) -> TensorStream:
    """The tensors of a safetensors file as (name, tensor), on the CPU, in the order of the file or of `names`, as soon
    as each is there and was checked against its checksums, where the file has them. Each owns its memory and stays
    valid for as long as it is held. `window_bytes`: how much is read ahead of whoever takes; one tensor larger than
    that is read alone. `key`: of an encrypted file. Tied weights come once for each name, as one memory. Errors: as
    `load`, here for the header; those of the data at the tensor that they hit, after those before it came."""
    whole = tensors.location(path)
    wanted = None if names is None else list(names)
    return TensorStream(whole, wanted, window_bytes, checksums, key_bytes(key))
