"""Where checkpoints go, how often, and how many stay there."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from holdfast._core import CheckpointFolder, IncrementalWriter, OpenCheckpoint, write_shard
from holdfast.errors import CheckpointError
from holdfast.ranks import Ranks
from holdfast.slices import SLICES
from holdfast.staging import Staging
from holdfast.tensors import location

PATIENCE_S = 600.0  # for the other ranks' shards


@dataclass(frozen=True)
class Tier:
    """A folder that all ranks see, on a disk, in memory (/dev/shm, on one machine) or as s3://bucket/prefix."""

    path: str | os.PathLike[str]
    every: int = 1
    """Steps that it divides are saved here."""
    keep: int = 2
    """Verified checkpoints that stay here."""


class TierWriter:
    """One rank's hand in one tier: at most one save is under way. Not thread-safe."""

    def __init__(self, tier: Tier, ranks: Ranks, *, incremental: bool, run_id: str) -> None:
        if tier.every < 1 or tier.keep < 1:
            raise ValueError(f"{tier.path}: every and keep must be at least 1")
        self.tier = tier
        self.folder = CheckpointFolder(location(tier.path), tier.keep)
        self._ranks = ranks
        self._run_id = run_id
        self._incremental = IncrementalWriter() if incremental else None
        self._staging = Staging()
        self._writing: threading.Thread | None = None
        self._failure: CheckpointError | None = None

    def save(
        self, step: int, epoch: int, structure: Callable[[], str], part: Mapping[str, torch.Tensor], slices: Any
    ) -> None:
        """Blocks while `part` is copied."""
        staged = self._staging.copy(part)
        self._writing = threading.Thread(
            target=self._write, args=(step, epoch, structure, staged, slices), name="holdfast checkpoint"
        )
        self._writing.start()

    def writing(self) -> bool:
        return self._writing is not None and self._writing.is_alive()

    def wait(self) -> CheckpointError | None:
        """Until the last save is committed; what it failed of."""
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        failure, self._failure = self._failure, None
        return failure

    def loaded(self, opened: OpenCheckpoint | None) -> None:
        """The newest state is in `opened`, of this tier; or in none of it."""
        if self._incremental and opened:
            self._incremental.go_on_from(opened)
        elif self._incremental:
            self._incremental.forget()

    def _write(self, step: int, epoch: int, structure: Callable[[], str], staged: list[Any], slices: Any) -> None:
        metadata = {SLICES: json.dumps(slices, separators=(",", ":"))} if slices else {}
        write = self._incremental.write if self._incremental else write_shard
        try:
            record = write(self.folder.path_of(step, epoch), self._ranks.rank, self._ranks.size, staged, metadata)
            outcome = json.dumps({"record": record})
        except Exception as error:
            outcome = json.dumps({"error": f"rank {self._ranks.rank}: {error}"})
        try:
            answers = self._ranks.gathered(f"save/{step}", outcome, PATIENCE_S)
            commit = partial(self._commit, step, epoch, structure, answers)
            said = json.loads(self._ranks.told(f"commit/{step}", commit, PATIENCE_S))
        except Exception as error:
            said = {"failed": str(error) or type(error).__name__, "damaged": []}
        self._settle(step, said)

    def _settle(self, step: int, said: dict[str, Any]) -> None:
        if said["failed"]:
            self._failure = CheckpointError(f"{self.tier.path}: step {step}: {said['failed']}")
        elif self._incremental:
            self._incremental.committed()
        for name, why in said["damaged"]:
            if self._ranks.rank == 0:
                print(f"holdfast: checkpoint {name} is damaged: {why}", flush=True)
        if said["damaged"] and self._incremental:
            self._incremental.forget()  # what it shares with the next one may be what is damaged

    def _commit(self, step: int, epoch: int, structure: Callable[[], str], answers: list[str]) -> str:
        parsed = [json.loads(answer) for answer in answers]
        errors = [answer["error"] for answer in parsed if "error" in answer]
        damaged: list[tuple[str, str]] = []
        try:
            if errors:
                self.folder.discard(step, epoch)
            else:
                shards = [_record(answer["record"]) for answer in parsed]
                damaged = self.folder.commit(self._run_id, step, epoch, self._ranks.size, structure(), shards)
        except Exception as error:
            errors.append(str(error))
        return json.dumps({"failed": "; ".join(errors), "damaged": damaged})


def _record(told: list[Any]) -> tuple[str, int, int, list[tuple[str, str, int, int]]]:
    file, size, crc, kept = told
    return file, size, crc, [tuple(each) for each in kept]
