"""Who saves which tensors, and reading a checkpoint back. Writing is the core's, by threads without the GIL."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from holdfast import buffers, elements, marks, state
from holdfast.member import SavedTensor
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
        flat = session.tracked.collect()
        sizes = {name: tensor.numel() * tensor.element_size() for name, tensor in flat.tensors.items()}
        mine: list[SavedTensor] = []
        alive = []  # the core copies within the call; until then the bytes must stay
        for name in share(sizes, session.rank, session.world_size):
            tensor = flat.tensors[name]
            data = elements.tensor_bytes(tensor)
            alive.append(data)
            mine.append((name, elements.dtype_name(tensor.dtype), elements.stored_shape(tensor), buffers.view(data)))
        return session.member.save(step, flat.structure, mine)
    finally:
        session.member.mark(marks.SNAPSHOT_END, step)


def load(session: Session, directory: str) -> None:
    """Puts the checkpoint's state in place. Errors: RuntimeError where a byte of it does not verify."""
    structure, tensors = _read(directory)
    session.tracked.restore(state.Flat(structure, tensors))


def _read(directory: str) -> tuple[str, dict[str, torch.Tensor]]:
    from holdfast import _core

    structure, raw = _core.load_checkpoint(directory)
    tensors = {}
    for name, (dtype, shape, data) in raw.items():
        bytes_ = torch.frombuffer(data, dtype=torch.uint8) if len(data) else torch.empty(0, dtype=torch.uint8)
        tensors[name] = elements.tensor_of(bytes_, dtype, list(shape))
    return structure, tensors
