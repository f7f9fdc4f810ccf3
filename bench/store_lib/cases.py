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
    needs: str = ""  # a parameter of holdfast.load


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
    Case("load_encrypted", ("holdfast_encrypted", "tensorizer_encrypted_1", "tensorizer_encrypted_2"), needs="key"),
    Case("save_durable", ("limit: direct_write_8", "holdfast", "tensorizer", "safetensors"), saves=True),
)


LEFT_OUT = {
    "load_http": "loads from HTTP beside curl and tensorizer are not part of this benchmark yet",
    "load_s3": "loads from S3 beside tensorizer and the Run:ai streamer are not part of this benchmark yet",
}

# The files that are loaded, and which of systems.SAVERS writes them.
FILES = {
    "model.safetensors": "holdfast",
    "model.tensors": "tensorizer",
    "encrypted.safetensors": "holdfast_encrypted",
    "encrypted.tensors": "tensorizer_encrypted",
}


def file_of(system: str) -> str:
    """The one that a system loads."""
    start = "encrypted" if "encrypted" in system else "model"
    return f"{start}.tensors" if system.startswith("tensorizer") else f"{start}.safetensors"


def is_there(case: Case) -> bool:
    """Whether this Holdfast can do what the case asks for."""
    import inspect

    import holdfast

    return not case.needs or case.needs in inspect.signature(holdfast.load).parameters
