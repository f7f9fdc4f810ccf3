"""What is run: cases, and the systems in each."""

from __future__ import annotations

from dataclasses import dataclass

LIMIT = "limit: "  # and then what limits.cc does, and on how many threads; or curl, processes x connections


@dataclass(frozen=True)
class Case:
    name: str
    systems: tuple[str, ...]  # the limit first
    cold: bool = False
    saves: bool = False
    over: str = ""  # "http", "s3": from a server of this machine
    first: bool = False  # until the first tensor is there


CURL = ("limit: curl_1x8", "limit: curl_2x4")
TENSORIZERS = ("tensorizer_1", "tensorizer_2", "tensorizer_4")

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
    Case("load_encrypted", ("holdfast_encrypted", "tensorizer_encrypted_1", "tensorizer_encrypted_2")),
    Case("load_http", (*CURL, "holdfast", "holdfast_unchecked", *TENSORIZERS), over="http"),
    Case("load_s3", (*CURL, "holdfast", "holdfast_unchecked", *TENSORIZERS, "runai"), over="s3"),
    Case(
        "first_tensor",
        ("holdfast", "holdfast_small", "tensorizer", "tensorizer_small"),
        over="http",
        first=True,
    ),
    Case(
        "save_durable",
        ("limit: direct_write_8", "holdfast", "tensorizer", "tensorizer_synced", "safetensors"),
        saves=True,
    ),
)

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
