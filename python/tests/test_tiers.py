"""Tiers and incremental checkpoints: where what is saved lies, and how much of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import holdfast


def state_of(step: int) -> dict[str, Any]:
    return {"frozen": torch.arange(2_000_000), "moving": torch.full((1000,), float(step)), "step": step}


def save(checkpointer: holdfast.Checkpointer, *steps: int) -> None:
    for step in steps:
        checkpointer.save(state_of(step), step)
        checkpointer.wait()


def loaded(checkpointer: holdfast.Checkpointer) -> int | None:
    state: dict[str, Any] = {"frozen": torch.zeros(2_000_000).long(), "moving": torch.zeros(1000), "step": -1}
    step = checkpointer.load(state)
    if step is not None:
        wanted = state_of(step)
        assert state["step"] == step
        assert torch.equal(state["frozen"], wanted["frozen"]) and torch.equal(state["moving"], wanted["moving"])
    return step


def steps_in(folder: Path) -> list[int]:
    return sorted(int(path.parent.name.split("-")[1]) for path in folder.glob("step-*/manifest.json"))


def bytes_in(folder: Path, step: int) -> int:
    return sum(file.stat().st_size for file in folder.glob(f"step-{step:012}-*/shard-*"))


def test_each_tier_has_the_steps_that_its_interval_divides(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    tiers = [holdfast.Tier(near, every=2, keep=1), holdfast.Tier(far, every=3, keep=3)]
    save(holdfast.Checkpointer(tiers), *range(1, 8))
    assert steps_in(near) == [6] and steps_in(far) == [3, 6]
    assert loaded(holdfast.Checkpointer(tiers)) == 6


def test_the_newest_of_all_tiers_that_verifies_is_loaded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tiers = [holdfast.Tier(tmp_path / "near", every=1), holdfast.Tier(tmp_path / "far", every=2)]
    save(holdfast.Checkpointer(tiers), 1, 2, 3)
    for file in (tmp_path / "near").glob("*/shard-*"):
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    assert loaded(holdfast.Checkpointer(tiers)) == 2
    said = capfd.readouterr().out
    assert "step-000000000003-epoch-1 passed over" in said and "step-000000000002-epoch-1 passed over" in said


def test_one_epoch_is_opened_in_all_tiers(tmp_path: Path) -> None:
    save(holdfast.Checkpointer(tmp_path / "near"), 9)
    save(holdfast.Checkpointer(tmp_path / "near"), 9)
    tiers = [holdfast.Tier(tmp_path / "near", every=1), holdfast.Tier(tmp_path / "far", every=1)]
    save(holdfast.Checkpointer(tiers), 1)
    for folder in ("near", "far"):
        assert (tmp_path / folder / "step-000000000001-epoch-3" / "manifest.json").exists()


def test_a_tier_that_fails_does_not_cost_the_others(tmp_path: Path) -> None:
    tiers = [holdfast.Tier(tmp_path / "a"), holdfast.Tier(tmp_path / "b")]
    checkpointer = holdfast.Checkpointer(tiers)
    (tmp_path / "a" / "step-000000000001-epoch-1").write_text("in the way")
    checkpointer.save(state_of(1), 1)
    with pytest.raises(holdfast.CheckpointError, match="/a: step 1"):
        checkpointer.wait()
    assert steps_in(tmp_path / "b") == [1]


def test_what_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path, keep=2, incremental=True)
    save(checkpointer, 1, 2, 3, 4)
    assert steps_in(tmp_path) == [3, 4]
    assert bytes_in(tmp_path, 1) > 16_000_000, "it is still needed"
    assert bytes_in(tmp_path, 2) == 0
    assert 0 < bytes_in(tmp_path, 3) < 100_000 and bytes_in(tmp_path, 4) < 100_000
    assert loaded(holdfast.Checkpointer(tmp_path)) == 4


def test_a_new_process_goes_on_from_what_it_loaded(tmp_path: Path) -> None:
    save(holdfast.Checkpointer(tmp_path, incremental=True), 1)
    checkpointer = holdfast.Checkpointer(tmp_path, incremental=True)
    assert loaded(checkpointer) == 1
    save(checkpointer, 2)
    assert bytes_in(tmp_path, 2) < 100_000
    whole = holdfast.Checkpointer(tmp_path, incremental=True)
    save(whole, 3)
    assert bytes_in(tmp_path, 3) > 16_000_000, "it loaded nothing, so it knows of nothing"


def test_after_damage_was_found_everything_is_written_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path, keep=1, incremental=True)
    save(checkpointer, 1, 2)
    (base,) = (tmp_path).glob("step-000000000001-*/shard-*")
    content = bytearray(base.read_bytes())
    content[-1] ^= 1
    base.write_bytes(content)
    save(checkpointer, 3)
    assert "is damaged" in capfd.readouterr().out
    save(checkpointer, 4)
    assert bytes_in(tmp_path, 4) > 16_000_000
    assert loaded(holdfast.Checkpointer(tmp_path)) == 4


def test_a_committed_step_is_never_written_into(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    save(checkpointer, 1)
    checkpointer.save({**state_of(1), "moving": torch.zeros(1000)}, 1)
    with pytest.raises(holdfast.CheckpointError, match="is committed"):
        checkpointer.wait()
    assert loaded(holdfast.Checkpointer(tmp_path)) == 1


@pytest.mark.parametrize("tier", [{"every": 0}, {"keep": 0}])
def test_numbers_below_one_are_refused(tmp_path: Path, tier: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        holdfast.Checkpointer([holdfast.Tier(tmp_path, **tier)])
