"""Checkpoints on S3, by way of versitygw: committed once, resumed, cleaned up; errors of the store cost no step."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

import holdfast
from fault_proxy import Fault, FaultProxy
from servers import S3



@pytest.fixture
def place(s3: S3, request: pytest.FixtureRequest) -> str:
    """The server is shared by all tests."""
    return f"s3://models/{request.node.name}"


def state_of(step: int) -> dict[str, object]:
    return {"w": torch.full((3_000_000,), float(step)), "step": step}


def save(checkpointer: holdfast.Checkpointer, *steps: int) -> None:
    for step in steps:
        checkpointer.save(state_of(step), step)
        checkpointer.wait()


def loaded(place: str | Path) -> int | None:
    state = state_of(0)
    step = holdfast.Checkpointer(place).load(state)
    assert step is None or torch.equal(state["w"], torch.full((3_000_000,), float(step)))
    assert step is None or state["step"] == step
    return step


def test_the_newest_of_those_that_stay_is_loaded(place: str, s3: S3) -> None:
    assert loaded(place) is None
    save(holdfast.Checkpointer(place, keep=2), 1, 2, 3)
    assert loaded(place) == 3
    names = {path.name for path in s3.folder.glob(f"**/{place.removeprefix('s3://')}/step-*")}
    assert names == {"step-000000000002-epoch-2", "step-000000000003-epoch-2"}


def test_a_job_that_was_overtaken_can_commit_no_more(place: str, s3: S3) -> None:
    old = holdfast.Checkpointer(place)
    save(old, 1)
    save(holdfast.Checkpointer(place), 2)
    with pytest.raises(holdfast.CheckpointError, match="has taken over"):
        save(old, 3)
    assert loaded(place) == 2


def test_errors_of_the_store_are_tried_again(place: str, faulty_s3: FaultProxy) -> None:
    checkpointer = holdfast.Checkpointer(place)
    faulty_s3.plan(Fault("status", status=503), Fault("reset"), Fault("status", status=500))
    save(checkpointer, 1)
    assert loaded(place) == 1


def test_a_store_that_refuses_fails_the_save_and_keeps_the_last(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpointer = holdfast.Checkpointer(place)
    save(checkpointer, 1)
    with monkeypatch.context() as patched:
        patched.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(holdfast.CheckpointError, match="403"):
            save(checkpointer, 2)
    assert loaded(place) == 1


def test_tiers_hold_each_its_own_steps_and_the_newest_is_loaded(place: str, tmp_path: Path) -> None:
    tiers = [holdfast.Tier(tmp_path / "near", every=1, keep=1), holdfast.Tier(place, every=2, keep=2)]
    checkpointer = holdfast.Checkpointer(tiers)
    save(checkpointer, 1, 2, 3)
    assert loaded(tmp_path / "near") == 3
    state = state_of(0)
    assert holdfast.Checkpointer(tiers).load(state) == 3
    shutil.rmtree(tmp_path / "near")
    state = state_of(0)
    assert holdfast.Checkpointer(tiers).load(state) == 2
    assert state["step"] == 2


def test_s33_a_stuck_store_holds_up_neither_the_job_nor_the_nearer_tier(
    place: str,
    faulty_s3: FaultProxy,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_REMOTE_STALL_S", "5")
    checkpointer = holdfast.Checkpointer([holdfast.Tier(tmp_path / "near", keep=1), holdfast.Tier(place)])
    faulty_s3.plan(Fault("stall", times=1, of=lambda request: request.method in ("PUT", "POST")))
    checkpointer.save(state_of(1), 1)
    checkpointer.save(state_of(2), 2)  # the store hangs until the stall is noticed, 5 s later
    checkpointer.save(state_of(3), 3)
    assert checkpointer.writing()
    assert f"{place} is still being written to; step 3 is left out there" in capfd.readouterr().out
    checkpointer.wait()
    assert loaded(tmp_path / "near") == 3
    assert loaded(place) == 1
