"""One configuration in a fresh process: several loads or saves, each timed; prints one JSON object."""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from store_lib import first_tensor, model, remote, systems
from store_lib.cases import FILES
from store_lib.systems import SAVERS


def cpu_s() -> float:
    """Of all threads and of children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def status_bytes(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def warm(path: Path) -> None:
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(4 << 20)
        while file.readinto(buffer):
            pass


def evict(path: Path) -> None:
    with open(path, "rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(call: Callable[[], Any]) -> dict[str, float]:
    cpu, wall = cpu_s(), time.perf_counter()
    result = call()
    run = {"wall": time.perf_counter() - wall, "cpu": cpu_s() - cpu}
    del result
    gc.collect()
    return run


def loads(system: str, path: Path, url: str, cold: bool, runs: int) -> dict[str, Any]:
    load = partial(remote.LOADERS[system](), url) if url else partial(systems.LOADERS[system](), path)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = status_bytes("VmRSS")
    result = []
    if not cold:
        warm(path)
    for _ in range(runs):
        if cold:
            evict(path)
        result.append(timed(load))
    peak = status_bytes("VmHWM")
    return {"runs": result, "peak_rss": peak, "peak_above": peak - before}


def saves(system: str, path: Path, gigabytes: float, runs: int) -> dict[str, Any]:
    tensors = model.state(gigabytes)
    result = []
    try:
        for _ in range(runs):
            result.append(timed(lambda: SAVERS[system](tensors, path)))
            path.unlink()
    finally:
        path.unlink(missing_ok=True)
    peak = status_bytes("VmHWM")
    return {"runs": result, "peak_rss": peak, "peak_above": 0}


def prepare(folder: Path, names: list[str], gigabytes: float) -> None:
    """The files that are loaded, synced."""
    tensors = model.state(gigabytes)
    for name in names:
        SAVERS[FILES[name]](tensors, folder / name)
        with open(folder / name, "rb") as file:
            os.fsync(file.fileno())
    print(json.dumps({"bytes": model.size(tensors)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["load", "first", "save", "prepare"])
    parser.add_argument("system", help="to prepare: the files, with commas between")
    parser.add_argument("path", type=Path)
    parser.add_argument("--url", default="", help="where a server has the file at `path`")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--gb", type=float, default=2.0)
    options = parser.parse_args()
    if options.what == "prepare":
        prepare(options.path, options.system.split(","), options.gb)
    elif options.what == "load":
        print(json.dumps(loads(options.system, options.path, options.url, options.cold, options.runs)))
    elif options.what == "first":
        warm(options.path)
        print(json.dumps(first_tensor.measure(options.system, options.url, options.runs)))
    else:
        print(json.dumps(saves(options.system, options.path, options.gb, options.runs)))


if __name__ == "__main__":
    main()
