"""What is run: cases, the systems in each, and what must be there for them."""

from __future__ import annotations

from dataclasses import dataclass

LIMIT = "limit: "  # and then what limits.cc does, and on how many threads


@dataclass(frozen=True)
class Case:
    name: str
    systems: tuple[str, ...]  # the limit first
    cold: bool = False
    saves: bool = False


CASES = (
    Case(
        "load_warm",
        (
            "limit: memcpy_2",
            "limit: arena_1",
            "limit: arena_2",
            "holdfast",
            "holdfast_unchecked",
            "tensorizer_2",
            "tensorizer_4",
            "tensorizer_verified",
            "fastsafetensors",
            "runai",
        ),
    ),
    Case("load_map", ("holdfast_map", "safetensors")),
    Case(
        "load_cold",
        (
            "limit: direct_read_8",
            "holdfast",
            "holdfast_unchecked",
            "tensorizer_2",
            "tensorizer_4",
            "safetensors",
            "fastsafetensors",
            "runai",
        ),
        cold=True,
    ),
    Case("save_durable", ("limit: direct_write_8", "holdfast", "tensorizer", "safetensors"), saves=True),
)


def file_of(system: str) -> str:
    return "model.tensors" if system.startswith("tensorizer") else "model.safetensors"
