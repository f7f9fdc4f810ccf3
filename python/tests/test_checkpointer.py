"""Checkpoints of any loop: asynchronous, and loaded into any layout."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import holdfast

JOBS = Path(__file__).parent / "jobs"


def state(value: float) -> dict[str, Any]:
    return {
        "model": {"w": torch.full((300, 700), value), "b": torch.full((3,), value, dtype=torch.bfloat16)},
        "step": int(value),
        "history": [int(value), {"loss": value}],
        "betas": (value, 0.9),
    }


def same(a: dict[str, Any], value: float) -> bool:
    b = state(value)
    tensors = all(torch.equal(a["model"][name], b["model"][name]) for name in b["model"])
    return tensors and (a["step"], a["history"], a["betas"]) == (b["step"], b["history"], b["betas"])


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


def test_what_was_saved_comes_back_in_place(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    checkpointer.save(state(3), 3)
    fresh = state(0)
    w = fresh["model"]["w"]
    checkpointer.wait()
    assert holdfast.Checkpointer(tmp_path).load(fresh) == 3
    assert same(fresh, 3) and fresh["model"]["w"] is w


def test_a_folder_without_checkpoints_loads_nothing(tmp_path: Path) -> None:
    fresh = state(1)
    assert holdfast.Checkpointer(tmp_path / "new").load(fresh) is None
    assert same(fresh, 1)


def test_s24_a_tensor_changed_right_after_save_is_saved_as_it_was(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    live = state(1)
    checkpointer.save(live, 1)
    live["model"]["w"].fill_(99)
    checkpointer.wait()
    fresh = state(0)
    assert checkpointer.load(fresh) == 1
    assert same(fresh, 1)


def test_s25_a_second_save_has_its_own_data_and_the_first_stays_whole(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path, keep=3)
    for step in (1, 2, 3):
        checkpointer.save(state(step), step)
    checkpointer.wait()
    for step in (3, 2, 1):
        fresh = state(0)
        assert checkpointer.load(fresh) == step
        assert same(fresh, step)
        flip_a_byte(tmp_path / f"step-{step:012}-epoch-1" / "shard-0-of-1.safetensors")


def test_s26_a_failed_save_is_told_at_the_next_call_and_never_listed(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    checkpointer.save(state(1), 1)
    checkpointer.wait()
    (tmp_path / "step-000000000002-epoch-1").write_text("in the way")
    checkpointer.save(state(2), 2)
    with pytest.raises(holdfast.CheckpointError, match="step 2: .*step-000000000002"):
        checkpointer.save(state(3), 3)
    (tmp_path / "step-000000000002-epoch-1").unlink()
    fresh = state(0)
    assert checkpointer.load(fresh) == 1
    checkpointer.save(state(3), 3)
    checkpointer.wait()
    assert checkpointer.load(fresh) == 3


def test_a_damaged_checkpoint_is_passed_over_and_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    for step in (1, 2):
        checkpointer.save(state(step), step)
    checkpointer.wait()
    flip_a_byte(tmp_path / "step-000000000002-epoch-1" / "shard-0-of-1.safetensors")
    fresh = state(0)
    assert checkpointer.load(fresh) == 1 and same(fresh, 1)
    assert "step-000000000002-epoch-1 passed over" in capfd.readouterr().out


def test_a_new_checkpointer_shuts_the_old_one_out(tmp_path: Path) -> None:
    old = holdfast.Checkpointer(tmp_path)
    holdfast.Checkpointer(tmp_path)
    old.save(state(1), 1)
    with pytest.raises(holdfast.CheckpointError, match="has taken over"):
        old.wait()


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    checkpointer.save({"w": torch.ones(2, 3)}, 1)
    checkpointer.wait()
    for wrong, why in [
        ({"v": torch.ones(2, 3)}, "tensor v: the checkpoint holds no such tensor"),
        ({"w": torch.ones(3, 2)}, r"tensor w: the checkpoint holds F32 of shape \[2, 3\], the state F32 of"),
        ({"w": torch.ones(2, 3).half()}, "the state F16"),
    ]:
        with pytest.raises(ValueError, match=why):
            checkpointer.load(wrong)
    with pytest.raises(TypeError, match="thing"):
        checkpointer.save({"thing": object()}, 2)


def test_tensors_that_are_not_contiguous_are_filled(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    checkpointer.save({"w": torch.arange(12.0).reshape(3, 4).t()}, 1)
    checkpointer.wait()
    fresh = {"w": torch.zeros(3, 4).t()}
    assert checkpointer.load(fresh) == 1
    assert torch.equal(fresh["w"], torch.arange(12.0).reshape(3, 4).t())


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_s27_a_hundred_saves_need_no_more_memory_than_ten(tmp_path: Path) -> None:
    checkpointer = holdfast.Checkpointer(tmp_path)
    live = {"w": torch.zeros(4_000_000)}
    after_ten = 0
    for step in range(1, 101):
        checkpointer.save(live, step)
        if step == 10:
            after_ten = resident_bytes()
    checkpointer.wait()
    assert resident_bytes() < after_ten + 4_000_000, "a quarter of one save's"


def test_s34_saves_meet_no_collective_of_the_training_loop(tmp_path: Path) -> None:
    job = [sys.executable, str(JOBS / "collectives_job.py"), str(tmp_path)]
    done = subprocess.run(job, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"steps": 60, "wrong": 0, "loaded": 60}


def test_s28_any_layout_loads_into_any_other_reading_what_each_rank_needs(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    job = [sys.executable, str(JOBS / "reshard_job.py"), str(port), str(tmp_path)]
    done = subprocess.run(job, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 4 * 25
    wrong = [line for line in lines if not line["same"] or not line["dcp_same"]]
    assert wrong == []
    headers = 16 << 10
    too_much = [line for line in lines if line["read"] > 1.05 * line["needed"] + headers]
    assert too_much == []
