"""`holdfast tensors`: lists and verifies files; a bad one is one line and exit code 2."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest
import torch

import holdfast

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"


def tensors(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "tensors", *words], capture_output=True, text=True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "a model.safetensors"
    holdfast.save({"w": torch.zeros(300, 1000), "step": torch.tensor(7)}, path, metadata={"k": "v"})
    return path


def test_ls_shows_each_tensor(model: Path) -> None:
    done = tensors("ls", model)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == f"{model}: 2 tensors, 1.20 MB, with checksums"
    assert lines[1].split() == ["name", "dtype", "shape", "size"]
    assert [line.split() for line in lines[2:]] == [
        ["step", "I64", "[]", "8", "B"],
        ["w", "F32", "[300,", "1000]", "1.20", "MB"],
    ]


def test_ls_for_programs(model: Path) -> None:
    (only,) = json.loads(tensors("ls", "--json", model).stdout)
    assert only["file"] == str(model) and only["bytes"] == model.stat().st_size and only["checksums"] is True
    assert only["metadata"] == {"format": "pt", "k": "v"}
    step = next(each for each in only["tensors"] if each["name"] == "step")
    assert model.read_bytes()[step["begin"] : step["begin"] + step["bytes"]] == struct.pack("<q", 7)


def test_verify_takes_a_good_file(model: Path) -> None:
    done = tensors("verify", model)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == f"{model}: 2 tensors, 1.20 MB, every byte matches its checksum\n"


def test_verify_says_where_there_is_nothing_to_verify_by(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    (tmp_path / "plain").write_bytes(struct.pack("<Q", len(header)) + header + b"x")
    done = tensors("verify", tmp_path / "plain")
    assert done.returncode == 0
    assert "there are no checksums" in done.stdout


@pytest.mark.parametrize("command", ["ls", "verify"])
@pytest.mark.parametrize(
    "bad, says",
    [
        (b"", "header"),
        (b"\xff" * 8 + b"{}", "header"),
        (struct.pack("<Q", 2) + b"{}x", "belong to no tensor"),
        (struct.pack("<Q", 2) + b"[]", "header"),
        (b"not tensors at all", "header"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path: Path, command: str, bad: bytes, says: str) -> None:
    (tmp_path / "bad").write_bytes(bad)
    done = tensors(command, tmp_path / "bad")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert str(tmp_path / "bad") in done.stderr and says in done.stderr and "again" in done.stderr


def test_a_flipped_byte_is_told_and_the_good_files_still_are_verified(model: Path, tmp_path: Path) -> None:
    flipped = bytearray(model.read_bytes())
    flipped[-1] ^= 16
    (tmp_path / "flipped").write_bytes(flipped)
    done = tensors("verify", tmp_path / "flipped", model)
    assert done.returncode == 2
    assert "tensor w: chunk 1 (bytes" in done.stderr and "restore the file from a copy" in done.stderr
    assert str(model) in done.stdout
    verdicts = json.loads(tensors("verify", "--json", tmp_path / "flipped", model).stdout)
    assert "tensor w" in verdicts[0]["error"] and "error" not in verdicts[1]


def test_a_missing_file_and_bad_usage(tmp_path: Path) -> None:
    done = tensors("verify", tmp_path / "none")
    assert done.returncode == 2 and "none" in done.stderr
    assert tensors("verify").returncode == 2
    assert tensors("frobnicate").returncode == 2
    assert "Example" in tensors("verify", "--help").stdout
