"""Elements of tensors: by the names that safetensors gives their types, as bytes, and back."""

from __future__ import annotations

from typing import Any

import torch

TensorPlace = tuple[str, str, list[int], int, int]  # name, dtype, shape, first byte, one past the last

_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn_x2": "F4",
    "complex64": "C64",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
_NAME_OF = {getattr(torch, attribute): name for attribute, name in _NAMES.items() if hasattr(torch, attribute)}
_DTYPE_OF = {name: dtype for dtype, name in _NAME_OF.items()}
_READ_ONLY = {"C128": torch.complex128, "C32": torch.complex32}  # other programs' files hold them, safetensors can't
_PACKED = "F4"  # torch counts pairs, safetensors elements


def storable(dtype: torch.dtype) -> bool:
    return dtype in _NAME_OF


def dtype_name(dtype: torch.dtype) -> str:
    return _NAME_OF[dtype]


def dtype_of(name: str) -> torch.dtype:
    """Errors: ValueError for elements that torch has no type for."""
    found = _DTYPE_OF.get(name) or _READ_ONLY.get(name)
    if found is None:
        raise ValueError(f"torch has no type for elements of {name}")
    return found


def torch_shape(dtype: str, shape: list[int]) -> list[int]:
    """A stored shape as torch counts it."""
    return [*shape[:-1], shape[-1] // 2] if dtype == _PACKED else shape


def identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for two tensors that show the same elements of the same memory: tied weights."""
    where = (tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape, tensor.stride())
    return (*where, tensor.is_conj(), tensor.is_neg())


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether its memory is what a file holds: row-major and within the CPU's reach."""
    return tensor.is_cpu and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def stored_shape(tensor: torch.Tensor) -> list[int]:
    """The shape as the file has it. Errors: ValueError for a scalar of packed elements."""
    shape = list(tensor.shape)
    if _NAME_OF[tensor.dtype] == _PACKED:
        if not shape:
            raise ValueError("a scalar of packed elements has no shape in safetensors")
        shape[-1] *= 2
    return shape


def tensor_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in row-major order as a flat tensor of bytes on the CPU; shares memory where it can."""
    plain = tensor.detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    flat = plain.contiguous().cpu().reshape(-1)
    return torch.view_as_real(flat).reshape(-1).view(torch.uint8) if flat.is_complex() else flat.view(torch.uint8)


def tensor_of(data: torch.Tensor, dtype: str, shape: list[int]) -> torch.Tensor:
    """A tensor over the bytes `data`, which must be aligned for its elements. Errors: ValueError for elements that
    torch has no type for."""
    return data.view(dtype_of(dtype)).view(torch_shape(dtype, shape))
