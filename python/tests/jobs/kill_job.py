"""Four ranks that save without end are killed, again and again, at moments of every kind; after each start they must
find the newest acknowledged checkpoint or a newer one, whole, and nothing else in the folder. Two starts of three write
incrementally. Prints a line of JSON.

    kill_job.py FOLDER POINTS SEED
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import holdfast
from holdfast.ranks import Ranks

RANKS = 4
KEEP = 2


def state_of(step: int) -> dict[str, Any]:
    """Half of the tensors change once in a while only."""
    values = [step // 7 if i % 2 else step for i in range(8)]
    tensors = {f"t{i}": torch.full((97, 211 + i), 10.0 * value + i) for i, value in enumerate(values)}
    return {"tensors": tensors, "step": step}


def leftovers(folder: Path) -> list[str]:
    """What earlier starts left beside whole checkpoints. This start's own are told by their epoch, which the fence
    names: other ranks may be saving already."""
    names = sorted(each.name for each in folder.iterdir())
    fences = [name for name in names if name.startswith("fence-")]
    own = [name for name in names if name.endswith(f"-epoch-{fences[-1].removeprefix('fence-')}")]
    older = [name for name in names if name.startswith("step-") and name not in own]
    needed = set()
    for manifest in folder.glob("step-*/manifest.json"):
        shards = json.loads(manifest.read_text())["body"]["shards"]
        needed |= {f"{kept['checkpoint']}/{kept['file']}" for shard in shards for kept in shard["kept"]}
    unfinished = [name for name in older if not (folder / name / "manifest.json").exists()]
    partial = [str(each) for name in unfinished for each in (folder / name).iterdir()]
    partial = [each for each in partial if str(Path(each).relative_to(folder)) not in needed]
    aside = [str(each) for name in older for each in (folder / name).iterdir() if each.suffix in (".partial", ".new")]
    others = [name for name in names if name not in older + own + fences]
    return partial + aside + others + (fences if len(fences) != 1 else [])


def rank_main(rank: int, folder: Path, store: Path, pipe: int, incremental: bool) -> None:
    ranks = Ranks(rank, RANKS, dist.FileStore(str(store), RANKS), "kill/")
    checkpointer = holdfast.Checkpointer(folder, keep=KEEP, incremental=incremental, ranks=ranks)
    state = state_of(0)
    step = checkpointer.load(state) or 0
    expected = state_of(step)
    same = all(torch.equal(state["tensors"][name], tensor) for name, tensor in expected["tensors"].items())
    found = {"found": step, "corrupt": not same or state["step"] != step}
    if rank == 0:
        found["leftovers"] = leftovers(folder)
    os.write(pipe, (json.dumps(found) + "\n").encode())
    while True:
        step += 1
        checkpointer.save(state_of(step), step)
        checkpointer.wait()
        if rank == 0:
            os.write(pipe, (json.dumps({"acknowledged": step}) + "\n").encode())


def start(folder: Path, store: Path, pipe: int, incremental: bool) -> list[int]:
    pids = []
    for rank in range(RANKS):
        pid = os.fork()
        if pid == 0:
            try:
                rank_main(rank, folder, store, pipe, incremental)
            finally:
                os._exit(1)
        pids.append(pid)
    return pids


def listen(source: int, until: float, lines: list[dict[str, Any]], enough: int) -> None:
    """Until so many acknowledgements came, or the moment."""
    rest = b""
    while time.monotonic() < until:
        ready, _, _ = select.select([source], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return
        rest += os.read(source, 65536)
        *whole, rest = rest.split(b"\n")
        lines += [json.loads(line) for line in whole]
        if enough and sum("acknowledged" in line for line in lines) >= enough:
            return


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


def main() -> None:
    folder, points, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    torch.set_num_threads(1)
    result = {"points": points, "lost": 0, "corrupt": 0, "leftovers": [], "commits": 0, "starts": 0}
    acknowledged = 0
    for point in range(points + 1):
        source, sink = os.pipe()
        store = folder.with_name(f"store-{point}")
        pids = start(folder, store, sink, incremental=point % 3 > 0)
        os.close(sink)
        lines: list[dict[str, Any]] = []
        last = point == points
        # Before anything is loaded, while the first is saved, or some saves later; then a moment more.
        acks = chance.choice([0, 0, 1, 1, 2, 4])
        listen(source, time.monotonic() + (60 if acks or last else chance.random() * 0.2), lines, 1 if last else acks)
        if not last:
            time.sleep(chance.random() * 0.03)
            if chance.random() < 0.3:  # one dies first, the others go on for a while
                victim = chance.choice(pids)
                os.kill(victim, signal.SIGKILL)
                time.sleep(chance.random() * 0.02)
        kill(pids)
        listen(source, time.monotonic() + 0.001, lines, 0)
        os.close(source)
        for line in lines:
            if "found" in line:
                result["starts"] += 1
                result["lost"] += line["found"] < acknowledged
                result["corrupt"] += line["corrupt"]
                result["leftovers"] += line.get("leftovers", [])
        for line in lines:
            if "acknowledged" in line:
                acknowledged = max(acknowledged, line["acknowledged"])
                result["commits"] += 1
        store.unlink(missing_ok=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
