"""What is promised, and whether it held. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from check import Check, at_most, times
from store_lib.rows import Row, best_of, find, limit_of, ratio

MEMORY_ABOVE_MODEL_MIB = 64
FIRST_TENSOR_MS = 50


@dataclass(frozen=True)
class Promise:
    case: str
    system: str
    of: str  # "limit", or how the peers' names begin
    least: float
    cpu: bool = False


PROMISES = (
    Promise("load_warm", "holdfast_unchecked", "limit", 0.95),
    Promise("load_warm", "holdfast", "limit", 0.85),
    Promise("load_warm", "holdfast_unchecked", "tensorizer", 2.5),
    Promise("load_warm", "holdfast", "tensorizer", 2.0),
    Promise("load_map", "holdfast_map", "safetensors", 1.0),
    Promise("load_cold", "holdfast_unchecked", "limit", 0.95),
    Promise("load_cold", "holdfast", "limit", 0.95),
    Promise("load_cold", "holdfast", "tensorizer", 8.0, cpu=True),
    Promise("load_cold", "holdfast_unchecked", "tensorizer", 20.0, cpu=True),
    Promise("load_encrypted", "holdfast_encrypted", "tensorizer", 3.0),
    *(
        promise
        for case in ("load_http", "load_s3")
        for promise in (Promise(case, "holdfast", "limit", 0.9), Promise(case, "holdfast", "tensorizer", 2.0))
    ),
    Promise("save_durable", "holdfast", "limit", 0.9),
    Promise("save_durable", "holdfast", "tensorizer", 2.5),
)


def checks(rows: Sequence[Row], model_bytes: int) -> list[Check]:
    """Of what was run."""
    found = []
    for promise in PROMISES:
        row = find(rows, promise.case, promise.system)
        if promise.of == "limit":
            other = limit_of(rows, promise.case)
        else:
            other = best_of(rows, promise.case, promise.of)
        if row is None or other is None:
            continue
        measured = ratio(row, other, promise.cpu)
        unit = "GB per CPU-second" if promise.cpu else "GB/s"
        what = f"{promise.case}: {promise.system}, {unit} of {other.system}"
        found.append(times(what, measured, promise.least))
    return found + memory_checks(rows, model_bytes) + first_tensor_checks(rows)


def memory_checks(rows: Sequence[Row], model_bytes: int) -> list[Check]:
    systems = ("holdfast", "holdfast_unchecked")
    promised = [row for row in rows if row.case.startswith("load_") and row.system in systems]
    return [
        at_most(
            f"{row.case}: {row.system}, memory above the model",
            (row.peak_above - model_bytes) / (1 << 20),
            MEMORY_ABOVE_MODEL_MIB,
            "MiB",
        )
        for row in promised
    ]


def first_tensor_checks(rows: Sequence[Row]) -> list[Check]:
    promised = [row for row in rows if row.case == "first_tensor" and row.system.startswith("holdfast")]
    return [
        at_most(f"{row.case}: {row.system}, until it is usable", 1e3 * median(row.wall_s), FIRST_TENSOR_MS, "ms")
        for row in promised
    ]
