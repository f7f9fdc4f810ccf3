"""The state that is loaded and saved: 291 bf16 tensors, named and shaped as a Llama's."""

from __future__ import annotations

import math

import torch

LAYERS = 32
VOCABULARY = 32_000
BLOCK = 1 << 22  # elements


def shapes(gigabytes: float) -> dict[str, tuple[int, int] | tuple[int]]:
    """About so many GB: 2 GB are 1536 wide."""
    width = max(64, round(1548 * math.sqrt(gigabytes / 2) / 64) * 64)
    inner = width * 8 // 3 // 64 * 64
    vocabulary = max(64, round(VOCABULARY * gigabytes / 2 / 64) * 64) if gigabytes < 2 else VOCABULARY
    result: dict[str, tuple[int, int] | tuple[int]] = {"model.embed_tokens.weight": (vocabulary, width)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        result |= {f"{at}self_attn.{part}_proj.weight": (width, width) for part in "qkvo"}
        result |= {f"{at}mlp.{part}_proj.weight": (inner, width) for part in ("gate", "up")}
        result |= {f"{at}mlp.down_proj.weight": (width, inner)}
        result |= {f"{at}{part}_layernorm.weight": (width,) for part in ("input", "post_attention")}
    return result | {"model.norm.weight": (width,), "lm_head.weight": (vocabulary, width)}


def state(gigabytes: float) -> dict[str, torch.Tensor]:
    """Numbers that repeat only after 8 MB, and nowhere at the same place of a page."""
    numbers = torch.randn(BLOCK, generator=torch.Generator().manual_seed(4)).bfloat16()
    result = {}
    for index, (name, shape) in enumerate(shapes(gigabytes).items()):
        elements = math.prod(shape)
        repeated = numbers.roll(index * 7919).repeat(elements // BLOCK + 1)[:elements]
        result[name] = repeated.reshape(shape).clone()
    return result


def size(tensors: dict[str, torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors.values())
