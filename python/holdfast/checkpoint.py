"""Who saves which tensors, and reading a checkpoint back. Writing is the core's, by threads without the GIL."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from holdfast import buffers, elements, marks, state
from holdfast.session import Session


def share(sizes: Mapping[str, int], rank: int, world_size: int) -> list[str]:
    """The tensors that `rank` saves, by name: largest first to whoever has least, so every rank finds the same."""
    loads = [0] * world_size
    mine = []
    for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        owner = loads.index(min(loads))
        loads[owner] += size + 1  # the 1 spreads empty tensors
        if owner == rank:
            mine.append(name)
    return mine


def save(session: Session, step: int) -> bool:
    """Hands this rank's share of the state after `step` steps to the core; blocks for one copy of it. False: the last
    checkpoint is still being written, this one is left out."""
    session.member.mark(marks.SNAPSHOT_BEGIN, step)
    try:
        if session.member.writing():
            return False
        flat = session.tracked.collect()
        sizes = {name: tensor.nbytes for name, tensor in flat.tensors.items()}
        mine = {name: flat.tensors[name] for name in share(sizes, session.rank, session.world_size)}
        return session.member.save(step, flat.structure, session.staging.copy(mine))
    finally:
        session.member.mark(marks.SNAPSHOT_END, step)


def load(session: Session, directory: str) -> None:
    """Puts the checkpoint's state in place, read straight into the tensors that are there. Errors: ValueError where a
    byte of it does not verify, FileNotFoundError, OSError; after them, tensors may hold anything."""
    from holdfast import _core

    opened = _core.OpenCheckpoint(directory)
    live = session.tracked.collect().tensors
    tensors: dict[str, torch.Tensor] = {}
    boxes = []
    for name, (dtype, shape) in opened.tensors().items():
        tensors[name] = tensor = _place_for(dtype, shape, live.get(name))
        if tensor.numel():
            boxes.append((name, [0] * len(shape), shape, buffers.view(elements.tensor_bytes(tensor))))
    read, checked = opened.read(boxes)
    if checked != read:
        raise ValueError(f"{directory}: {read - checked} bytes of tensors have no checksums")
    session.tracked.restore(state.Flat(opened.structure, tensors))


def _place_for(dtype: str, shape: list[int], live: torch.Tensor | None) -> torch.Tensor:
    """What is there, where it is alike; an optimizer that has made no step has nothing yet."""
    kind, size = elements.dtype_of(dtype), elements.torch_shape(dtype, shape)
    if live is not None and elements.is_plain(live) and live.dtype == kind and list(live.shape) == size:
        return live
    return torch.empty(size, dtype=kind)
