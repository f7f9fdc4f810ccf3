"""A state from one rank to another over the new group: a short header, then everything in one flat run of bytes."""

from __future__ import annotations

import json

import torch
import torch.distributed as dist

from holdfast import buffers, elements, state

_ALIGNMENT = 64
_CHUNK_BYTES = 256 << 20


def pack(flat: state.Flat) -> torch.Tensor:
    """`flat` as bytes: length of the table, the table (JSON), the tensors."""
    table, offset, parts = [], 0, []
    for name, tensor in flat.tensors.items():
        data = elements.tensor_bytes(tensor)
        table.append([name, elements.dtype_name(tensor.dtype), elements.stored_shape(tensor), offset, data.numel()])
        parts.append((offset, data))
        offset = _aligned(offset + data.numel())
    text = json.dumps([flat.structure, table], separators=(",", ":")).encode()
    start = _aligned(8 + len(text))
    packed = torch.empty(start + offset, dtype=torch.uint8)
    packed[:8].view(torch.int64)[0] = len(text)
    packed[8 : 8 + len(text)].copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
    for at, data in parts:
        packed[start + at : start + at + data.numel()].copy_(data)
    return packed


def unpack(packed: torch.Tensor) -> state.Flat:
    """The tensors of the result share memory with `packed`."""
    length = int(packed[:8].view(torch.int64)[0])
    structure, table = json.loads(bytes(buffers.view(packed[8 : 8 + length])))
    start = _aligned(8 + length)
    tensors = {
        name: elements.tensor_of(packed[start + at : start + at + size], dtype, shape)
        for name, dtype, shape, at, size in table
    }
    return state.Flat(structure, tensors)


def send(flat: state.Flat, target: int) -> None:
    """Blocks until it is on its way. Errors: as torch's where the group breaks."""
    packed = pack(flat)
    dist.send(_on_wire(torch.tensor([packed.numel()])), target)
    for chunk in torch.split(packed, _CHUNK_BYTES):
        dist.send(_on_wire(chunk), target)


def receive(source: int) -> state.Flat:
    """Blocks until it is here. Errors: as torch's where the group breaks."""
    size = _on_wire(torch.zeros(1, dtype=torch.int64))
    dist.recv(size, source)
    packed = torch.empty(int(size.item()), dtype=torch.uint8)
    for chunk in torch.split(packed, _CHUNK_BYTES):
        part = _on_wire(chunk)
        dist.recv(part, source)
        if part is not chunk:
            chunk.copy_(part)
    return unpack(packed)


def _on_wire(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` where the group can reach it: NCCL moves device memory alone."""
    return tensor.cuda() if dist.get_backend() == "nccl" else tensor


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


