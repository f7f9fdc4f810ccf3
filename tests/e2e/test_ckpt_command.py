"""`holdfast ckpt`: what is in a directory of checkpoints, on disk and S3; what is damaged is one line and exit 2."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch

import holdfast
from servers import S3

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"


def ckpt(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "ckpt", *words], capture_output=True, text=True)


def state_of(step: int) -> dict[str, object]:
    return {"w": torch.full((1000,), float(step)), "frozen": torch.ones(50_000), "step": step}


def save(path: str | Path, *steps: int, incremental: bool = False) -> None:
    checkpointer = holdfast.Checkpointer(path, keep=9, incremental=incremental)
    for step in steps:
        checkpointer.save(state_of(step), step)
    checkpointer.wait()


def loaded(path: str | Path) -> int | None:
    state = state_of(0)
    step = holdfast.Checkpointer(path).load(state)
    assert step is None or torch.equal(state["w"], torch.full((1000,), float(step)))
    return step


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "ckpt", 10, 20, 30)
    return tmp_path / "ckpt"


def test_ls_shows_each_checkpoint_newest_first(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    done = ckpt("ls", folder)
    assert done.returncode == 0 and done.stderr == ""
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1] == ["step", "epoch", "ranks", "shards", "size", "shared", "state"]
    assert [line[0] for line in lines[2:5]] == ["30", "20", "10"]
    assert lines[2][-1] == "committed"
    assert lines[5] == ["not", "a", "checkpoint:", "notes.txt"]


def test_ls_for_programs_tells_what_is_unfinished_and_what_is_shared(tmp_path: Path) -> None:
    save(tmp_path, 1, 2, incremental=True)
    (tmp_path / "step-000000000003-epoch-1").mkdir()
    done = json.loads(ckpt("ls", "--json", tmp_path).stdout)
    unfinished, second, first = done["checkpoints"]
    assert unfinished["committed"] is False and "never committed" in unfinished["why"]
    assert first["shared_bytes"] == 0 and second["shared_bytes"] == first["bytes"] > 10 * second["bytes"]


def test_verify_names_the_damaged_file_and_goes_on(folder: Path) -> None:
    assert ckpt("verify", folder).returncode == 0
    shard = folder / "step-000000000020-epoch-1" / "shard-0-of-1.safetensors"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    done = ckpt("verify", folder)
    assert done.returncode == 2
    assert done.stdout.count("every byte matches") == 2
    (line,) = done.stderr.splitlines()
    assert str(shard) in line and "restore" in line
    assert ckpt("verify", folder, "--step", "30").returncode == 0
    assert ckpt("verify", folder / "step-000000000020-epoch-1").returncode == 2


def test_prune_keeps_the_newest_that_verify(folder: Path) -> None:
    assert ckpt("prune", folder, "--keep", "1", "--dry-run").stdout.count("would be removed") == 2
    assert len(list(folder.glob("step-*"))) == 3
    done = ckpt("prune", folder, "--keep", "1")
    assert done.returncode == 0 and done.stdout.count("removed") == 2
    assert [path.name for path in folder.glob("step-*")] == ["step-000000000030-epoch-1"]
    assert ckpt("prune", folder, "--keep", "1").stdout == "nothing to remove\n"


def test_restore_goes_back_to_an_earlier_step(folder: Path) -> None:
    done = ckpt("restore", folder, "--step", "10")
    assert done.returncode == 0, done.stderr
    assert "resumes from it" in done.stdout
    assert loaded(folder) == 10
    assert len(list(folder.glob("step-*"))) == 4, "the newer ones stay"


def test_cp_brings_a_checkpoint_to_s3_and_back(s3: S3, tmp_path: Path) -> None:
    save(tmp_path / "a", 1, 2, incremental=True)
    assert ckpt("cp", tmp_path / "a", "s3://models/ckpt-command").returncode == 0
    listed = json.loads(ckpt("ls", "--json", "s3://models/ckpt-command").stdout)["checkpoints"]
    assert [(entry["step"], entry["shared_bytes"]) for entry in listed] == [(2, 0)]
    assert ckpt("verify", "s3://models/ckpt-command").returncode == 0
    assert ckpt("cp", "s3://models/ckpt-command", tmp_path / "b", "--step", "2").returncode == 0
    assert loaded(tmp_path / "b") == 2
    again = ckpt("cp", "s3://models/ckpt-command", tmp_path / "b")
    assert again.returncode == 2 and "is here already" in again.stderr


@pytest.mark.parametrize("words", [["ls"], ["verify"], ["prune", "--keep", "1"], ["restore", "--step", "1"]])
def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, words: list[str]) -> None:
    done = ckpt(words[0], tmp_path / "none", *words[1:])
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert str(tmp_path / "none") in line
