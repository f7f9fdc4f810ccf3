"""`holdfast tensors` on models in several files: cat, diff, cp, reshard, and ls and verify of folders."""

from __future__ import annotations

import json
import math
import os
import pty
import struct
import subprocess
from pathlib import Path

import pytest
import torch

import holdfast
from holdfast.elements import _NAME_OF

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"
INDEX = "model.safetensors.index.json"


def tensors(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "tensors", *words], capture_output=True, text=True)


def output(*words: str | Path) -> str:
    done = tensors(*words)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def refused(*words: str | Path) -> str:
    done = tensors(*words)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done
    return done.stderr


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    many = {f"layers.{n}.weight": torch.randn(100, 1000) for n in range(4)}
    return {**many, "bias": torch.ones(7).bfloat16(), "head": many["layers.0.weight"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    holdfast.save(state(), tmp_path / "m", max_shard_bytes="1MB")
    return tmp_path / "m"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_ls_of_a_folder_has_a_column_for_the_file(folder: Path) -> None:
    lines = output("ls", folder).splitlines()
    assert lines[0] == f"{folder}: 5 tensors in 2 files, 1.60 MB, with checksums"
    assert lines[1].split() == ["name", "dtype", "shape", "size", "file"]
    assert lines[2].split() == "layers.0.weight F32 [100, 1000] 400.00 kB model-00001-of-00002.safetensors".split()
    assert len(lines) == 7
    (only,) = json.loads(output("ls", "--json", folder / INDEX))
    assert only["index"] == str(folder / INDEX) and only["checksums"] is True
    assert [each["file"] for each in only["files"]] == [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    assert {each["name"] for each in only["tensors"]} == set(state()) - {"head"}


def test_verify_of_a_folder_reads_every_file(folder: Path) -> None:
    assert output("verify", folder) == f"{folder}: 5 tensors in 2 files, 1.60 MB, every byte matches its checksum\n"
    flip(folder / "model-00002-of-00002.safetensors")
    assert "model-00002-of-00002.safetensors" in refused("verify", folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "fetch or write the model again" in refused("ls", folder)


@pytest.mark.parametrize("dtype", list(_NAME_OF))
def test_cat_shows_values_of_every_type(tmp_path: Path, dtype: torch.dtype) -> None:
    raw = torch.arange(256, dtype=torch.uint8)
    if dtype == torch.bool:
        tensor = raw % 2 == 1
    elif dtype in (torch.float32, torch.float64, torch.complex64):
        tensor = torch.randn(64, dtype=torch.float64).to(dtype)
    else:
        tensor = raw.view(dtype)
    holdfast.save({"t": tensor}, tmp_path / "t.safetensors")
    told = json.loads(output("cat", tmp_path / "t.safetensors", "t", "--json", "--limit", "1000"))
    assert told["dtype"] == _NAME_OF[dtype]
    if dtype == torch.float4_e2m1fn_x2:  # torch can't show it
        low_first = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
        expected = [low_first[code] for byte in range(256) for code in (byte & 15, byte >> 4)]
    elif dtype == torch.complex64:
        assert [complex(each.replace("i", "j")) for each in told["first"]] == pytest.approx(tensor.tolist(), rel=1e-6)
        return
    elif dtype in (torch.bool, torch.uint64, torch.int64):
        expected = tensor.tolist()
    else:
        expected = tensor.to(torch.float64).tolist()
    finite = [float(each) for each in expected if math.isfinite(each)]
    assert told["elements"] == len(expected) and told["nan"] == sum(math.isnan(each) for each in expected)
    assert told["infinite"] == sum(math.isinf(each) for each in expected)
    assert told["min"] == pytest.approx(min(finite), rel=1e-3) and told["max"] == pytest.approx(max(finite), rel=1e-3)
    for shown, each in zip(told["first"], expected, strict=True):
        assert float(shown) == pytest.approx(float(each), rel=1e-3, abs=0, nan_ok=True)


def test_cat_for_people(folder: Path) -> None:
    lines = output("cat", folder, "bias", "--limit", "3").splitlines()
    assert lines[0] == f"bias: BF16 [7], 14 B, in {folder}/model-00002-of-00002.safetensors"
    assert lines[1] == "min 1, max 1, mean 1; NaN 0, infinite 0"
    assert lines[2] == "first 3 of 7: 1 1 1"
    assert output("cat", folder, "head").startswith("layers.0.weight: F32")


def test_cat_of_bad_input_is_one_line(folder: Path) -> None:
    assert "holds no tensor zed" in refused("cat", folder, "zed")
    assert "No such file" in refused("cat", folder / "none.safetensors", "a")
    flip(folder / "model-00002-of-00002.safetensors")
    assert "checksum" in refused("cat", folder, "bias")
    assert tensors("cat", folder).returncode == 2
    assert "Example" in output("cat", "--help")


def test_diff_of_the_same_in_other_files(folder: Path, tmp_path: Path) -> None:
    holdfast.save(state(), tmp_path / "one.safetensors")
    assert output("diff", folder, tmp_path / "one.safetensors") == "the same; compared: every byte of 6 tensors\n"
    same = json.loads(output("diff", "--json", "--bytes", folder, folder))
    assert same["same"] is True and same["compared"] == {"tensors": 6, "by_checksums_alone": 0}
    trusted = json.loads(output("diff", "--json", "--checksums", folder, folder))
    assert trusted["compared"] == {"tensors": 6, "by_checksums_alone": 6}


def test_diff_tells_what_differs(folder: Path, tmp_path: Path) -> None:
    other = state()
    other["layers.1.weight"] = other["layers.1.weight"].clone()
    other["layers.1.weight"][2, 3] += 0.5
    other["bias"] = other["bias"].float()
    other["extra"] = torch.zeros(2)
    del other["layers.3.weight"]
    holdfast.save(other, tmp_path / "b.safetensors")
    done = tensors("diff", folder, tmp_path / "b.safetensors")
    assert done.returncode == 1 and done.stderr == ""
    assert f"only in {folder}: layers.3.weight, F32 [100, 1000]" in done.stdout
    assert f"only in {tmp_path}/b.safetensors: extra, F32 [2]" in done.stdout
    assert "other kind: bias, BF16 [7] and F32 [7]" in done.stdout
    assert "4 differ; compared: every byte of 4 tensors" in done.stdout
    told = json.loads(tensors("diff", "--json", folder, tmp_path / "b.safetensors").stdout)
    (only,) = told["other_values"]
    assert only["name"] == "layers.1.weight" and only["other"] == 1 and only["first"] == 2003
    assert only["absolute_max"] == pytest.approx(0.5, rel=1e-5)


def test_diff_within_a_tolerance(tmp_path: Path) -> None:
    holdfast.save({"w": torch.tensor([1.0, 2.0])}, tmp_path / "a.safetensors")
    holdfast.save({"w": torch.tensor([1.0, 2.001])}, tmp_path / "b.safetensors")
    pair = (tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert tensors("diff", *pair).returncode == 1
    assert tensors("diff", *pair, "--tolerance", "1e-5").returncode == 1
    assert output("diff", *pair, "--tolerance", "0.01").startswith("the same within 0.01;")


def test_diff_of_bad_input_is_exit_code_2(folder: Path, tmp_path: Path) -> None:
    assert "none" in refused("diff", folder, tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(struct.pack("<Q", 2) + b"[]")
    assert "bad.safetensors" in refused("diff", tmp_path / "bad.safetensors", folder)
    flip(folder / "model-00001-of-00002.safetensors")
    assert "checksum" in refused("diff", folder, folder)
    assert tensors("diff", folder, folder, "--checksums", "--bytes").returncode == 2


def test_cp_copies_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    assert "every byte matched its checksum" in output("cp", folder, tmp_path / "copy")
    names = sorted(each.name for each in folder.iterdir())
    assert sorted(each.name for each in (tmp_path / "copy").iterdir()) == names
    assert all((folder / name).read_bytes() == (tmp_path / "copy" / name).read_bytes() for name in names)
    one = folder / "model-00001-of-00002.safetensors"
    told = json.loads(output("cp", "--json", one, tmp_path / "renamed.safetensors"))
    assert told["checksums"] is True and told["files"] == 1
    assert (tmp_path / "renamed.safetensors").read_bytes() == one.read_bytes()
    (tmp_path / "into").mkdir()
    output("cp", one, tmp_path / "into")
    assert (tmp_path / "into" / one.name).read_bytes() == one.read_bytes()


def test_cp_leaves_nothing_of_what_is_damaged_or_in_the_way(folder: Path, tmp_path: Path) -> None:
    holdfast.save({"x": torch.zeros(1)}, tmp_path / "other", max_shard_bytes="1MB")
    assert "is there already" in refused("cp", folder, tmp_path / "other")
    flip(folder / "model-00002-of-00002.safetensors")
    assert "checksum" in refused("cp", folder, tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []
    bad = folder / "model-00002-of-00002.safetensors"
    (tmp_path / "kept.safetensors").write_bytes(b"old")
    assert "checksum" in refused("cp", bad, tmp_path / "kept.safetensors")
    assert (tmp_path / "kept.safetensors").read_bytes() == b"old"
    assert not list(tmp_path.glob("*.partial*"))


def test_cp_says_where_nothing_could_be_checked(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    (tmp_path / "plain.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"x")
    assert "there are no checksums" in output("cp", tmp_path / "plain.safetensors", tmp_path / "copy.safetensors")
    assert (tmp_path / "copy.safetensors").read_bytes() == (tmp_path / "plain.safetensors").read_bytes()


def test_reshard_splits_and_joins(folder: Path, tmp_path: Path) -> None:
    holdfast.save(state(), tmp_path / "one.safetensors")
    output("reshard", folder, tmp_path / "joined.safetensors", "--shards", "1")
    assert (tmp_path / "joined.safetensors").read_bytes() == (tmp_path / "one.safetensors").read_bytes()
    told = json.loads(output("reshard", "--json", tmp_path / "one.safetensors", tmp_path / "s", "--shards", "3"))
    assert told["files"] == [f"{tmp_path}/s/model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]
    output("reshard", tmp_path / "s", tmp_path / "s", "--max-shard-bytes", "500kB")
    loaded = holdfast.load(tmp_path / "s")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in state().items())
    loaded["head"][0, 0] = 7
    assert loaded["layers.0.weight"][0, 0] == 7
    assert len(list((tmp_path / "s").iterdir())) == 5


def test_reshard_of_bad_input_is_one_line(folder: Path, tmp_path: Path) -> None:
    assert "--max-shard-bytes 5GB or --shards 4" in refused("reshard", folder, tmp_path / "x")
    assert "5GB" in refused("reshard", folder, tmp_path / "x", "--max-shard-bytes", "many")
    assert "ask for fewer" in refused("reshard", folder, tmp_path / "x", "--shards", "50")
    assert "name a folder" in refused("reshard", folder, tmp_path / "x.safetensors", "--shards", "2")
    flip(folder / "model-00002-of-00002.safetensors")
    assert "checksum" in refused("reshard", folder, tmp_path / "x", "--shards", "2")
    assert not (tmp_path / "x" / INDEX).exists() and list((tmp_path / "x").iterdir()) == []


@pytest.mark.parametrize(
    "index, says",
    [
        ('{"weight_map": {"a": "../x.safetensors"}}', "tensor a: the file name"),
        ('{"weight_map": {"a": "b", "a": "c"}}', "duplicate tensor a"),
        ("{", "not JSON"),
        ("{}", "no weight_map"),
    ],
)
def test_a_bad_index_is_one_line(tmp_path: Path, index: str, says: str) -> None:
    (tmp_path / INDEX).write_text(index)
    for words in (["ls", tmp_path], ["verify", tmp_path], ["cat", tmp_path, "a"], ["cp", tmp_path, tmp_path / "c"]):
        line = refused(*words)
        assert str(tmp_path / INDEX) in line and says in line and "again" in line


def test_a_name_cannot_move_the_cursor(tmp_path: Path) -> None:
    holdfast.save({"a\x1b[2J\nb": torch.zeros(1)}, tmp_path / "t.safetensors")
    shown = output("ls", tmp_path / "t.safetensors")
    assert "\x1b" not in shown and len(shown.splitlines()) == 3


def test_on_a_terminal_the_result_is_the_same(folder: Path) -> None:
    leader, follower = pty.openpty()
    done = subprocess.run([BINARY, "tensors", "verify", folder], stdout=subprocess.PIPE, stderr=follower, text=True)
    os.close(follower)
    assert done.returncode == 0 and done.stdout.endswith("every byte matches its checksum\n")
    os.close(leader)
