"""`holdfast tensors convert`: from each kind that is read to each that is written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import safetensors.torch
import torch
from tensorizer import EncryptionParams, TensorSerializer

import holdfast

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"


def convert(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "tensors", "convert", *words], capture_output=True, text=True)


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    return {"w": torch.randn(700, 1000), "b": torch.ones(5, dtype=torch.bfloat16), "step": torch.tensor(7)}


def inputs(folder: Path, state: dict[str, torch.Tensor]) -> list[Path]:
    torch.save({**state, "note": "x"}, folder / "m.pt")
    serializer = TensorSerializer(str(folder / "m.tensors"))
    serializer.write_state_dict(state)
    serializer.close()
    holdfast.save(state, folder / "m.safetensors")
    return [folder / "m.pt", folder / "m.tensors", folder / "m.safetensors"]


def test_every_kind_becomes_safetensors_that_all_tools_read(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    for path in inputs(tmp_path, state):
        out = tmp_path / "out.safetensors"
        done = convert(path, out)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert done.stdout.startswith(f"{out}: 3 tensors, 2.80 MB, from ")
        assert ("left out, being no tensors: note" in done.stdout) == (path.suffix == ".pt")
        assert holdfast.verify(out) is True
        theirs = safetensors.torch.load_file(out)
        assert set(theirs) == set(state) and all(torch.equal(theirs[name], tensor) for name, tensor in state.items())
        assert [each.name for each in tmp_path.glob("*partial*")] == []


def test_there_and_back_through_a_folder_of_dcp(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    for number, path in enumerate(inputs(tmp_path, state)):
        folder, out = tmp_path / f"ckpt{number}", tmp_path / "out.safetensors"
        done = convert("--json", path, folder, "--to", "dcp")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["tensors"] == 3 and told["to_kind"] == "dcp" and told["from"] == str(path)
        assert convert(f"{folder}/", out).returncode == 0
        assert all(torch.equal(each, state[name]) for name, each in holdfast.load(out).items())


def test_tied_tensors_stay_tied_and_a_model_in_several_files_is_read(tmp_path: Path) -> None:
    weight = torch.randn(1000, 10)
    torch.save({"embed": weight, "head": weight}, tmp_path / "m.pt")
    assert convert(tmp_path / "m.pt", tmp_path / "model.safetensors").returncode == 0
    assert (tmp_path / "model.safetensors").stat().st_size < 41_000
    loaded = holdfast.load(tmp_path / "model.safetensors")
    assert loaded["embed"].data_ptr() == loaded["head"].data_ptr() and torch.equal(loaded["head"], weight)

    (tmp_path / "folder").mkdir()
    for name in ("a", "b"):
        holdfast.save({name: weight}, tmp_path / "folder" / f"{name}.safetensors")
    index = {"metadata": {}, "weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}
    (tmp_path / "folder" / "model.safetensors.index.json").write_text(json.dumps(index))
    done = convert(tmp_path / "folder", tmp_path / "one.safetensors")
    assert done.returncode == 0, done.stderr
    assert set(holdfast.load(tmp_path / "one.safetensors")) == {"a", "b"}


def test_an_encrypted_file_needs_its_key(tmp_path: Path) -> None:
    params = EncryptionParams.from_string("open sesame", opslimit=1, memlimit=8192)
    serializer = TensorSerializer(str(tmp_path / "m.tensors"), encryption=params)
    serializer.write_state_dict({"w": torch.ones(5)})
    serializer.close()
    out = tmp_path / "out.safetensors"
    done = convert(tmp_path / "m.tensors", out)
    assert done.returncode == 2 and "is encrypted" in done.stderr and not out.exists()
    (tmp_path / "wrong").write_text("shut sesame\n")
    done = convert(tmp_path / "m.tensors", out, "--key-file", tmp_path / "wrong")
    assert done.returncode == 2 and "the key does not fit" in done.stderr and not out.exists()
    (tmp_path / "right").write_text("open sesame\n")
    assert convert(tmp_path / "m.tensors", out, "--key-file", tmp_path / "right").returncode == 0
    assert torch.equal(holdfast.load(out)["w"], torch.ones(5))


def test_what_cannot_be_converted_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    torch.save({"a": torch.ones(2), "wide": torch.ones(2, dtype=torch.complex128)}, tmp_path / "c.pt")
    torch.save({"a": torch.ones(2)}, tmp_path / "d.pt")
    damaged = bytearray((tmp_path / "d.pt").read_bytes())
    damaged[damaged.index(b"\x00\x00\x80\x3f")] ^= 1
    (tmp_path / "d.pt").write_bytes(damaged)
    (tmp_path / "e.pt").write_bytes(b"PK")
    for name, says in (("c.pt", "C128"), ("d.pt", "tensor a: .*checksum"), ("e.pt", "too short"), ("none", "none")):
        done = convert(tmp_path / name, out)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.count("\n") == 1 and not list(tmp_path.glob("out*"))
        assert any(part in done.stderr for part in says.split(": .*")), done.stderr
    assert convert(tmp_path / "c.pt", out, "--to", "zip").returncode == 2
    assert "Example" in convert("--help").stdout


def test_other_kinds_are_listed_and_verified_like_ours(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    paths = inputs(tmp_path, state)
    convert(paths[0], tmp_path / "ckpt", "--to", "dcp")
    for path in [*paths, tmp_path / "ckpt"]:
        listed = subprocess.run([BINARY, "tensors", "ls", path], capture_output=True, text=True)
        assert listed.returncode == 0 and listed.stdout.startswith(f"{path}: 3 tensors, 2.80 MB, with checksums")
        verified = subprocess.run([BINARY, "tensors", "verify", path], capture_output=True, text=True)
        assert verified.returncode == 0 and "every byte matches its checksum" in verified.stdout
    damaged = bytearray((tmp_path / "m.pt").read_bytes())
    damaged[100_000] ^= 1
    (tmp_path / "m.pt").write_bytes(damaged)
    verified = subprocess.run([BINARY, "tensors", "verify", tmp_path / "m.pt"], capture_output=True, text=True)
    assert verified.returncode == 2 and "tensor w: " in verified.stderr and "restore the file" in verified.stderr
