"""Tensor files from Python: what goes in comes out, here and in the package safetensors."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

import holdfast
from holdfast.elements import _NAME_OF

MODES = ("copy", "map")


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit."""
    alike = one.dtype == other.dtype and one.shape == other.shape
    return alike and bytes(holdfast_bytes(one)) == bytes(holdfast_bytes(other))


def holdfast_bytes(tensor: torch.Tensor) -> bytes:
    from holdfast.elements import tensor_bytes

    return bytes(tensor_bytes(tensor).tolist())


def random_tensor(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    count = 1
    for n in shape:
        count *= n
    raw = torch.randint(0, 256, (count * dtype.itemsize,), dtype=torch.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", list(_NAME_OF))
def test_every_type_comes_back_bit_for_bit(tmp_path: Path, dtype: torch.dtype, mode: str) -> None:
    tensors = {"matrix": random_tensor(dtype, 3, 4), "none": random_tensor(dtype, 0, 2)}
    if dtype != torch.float4_e2m1fn_x2:
        tensors["scalar"] = random_tensor(dtype)
    holdfast.save(tensors, tmp_path / "t.safetensors")
    loaded = holdfast.load(tmp_path / "t.safetensors", mode=mode)  # type: ignore[arg-type]
    assert set(loaded) == set(tensors)
    assert all(same(loaded[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("dtype", list(_NAME_OF))
def test_the_package_safetensors_reads_what_we_write_and_we_what_it_writes(tmp_path: Path, dtype: torch.dtype) -> None:
    tensors = {"a": random_tensor(dtype, 2, 6), "b": random_tensor(dtype, 4)}
    holdfast.save(tensors, tmp_path / "ours.safetensors", metadata={"k": "v"})
    theirs = safetensors.torch.load_file(tmp_path / "ours.safetensors")
    assert all(same(theirs[name], tensor) for name, tensor in tensors.items())
    with safetensors.safe_open(tmp_path / "ours.safetensors", "pt") as file:
        assert file.metadata()["k"] == "v" and file.metadata()["format"] == "pt"
    safetensors.torch.save_file(tensors, tmp_path / "theirs.safetensors")
    for mode in MODES:
        ours = holdfast.load(tmp_path / "theirs.safetensors", mode=mode)  # type: ignore[arg-type]
        assert all(same(ours[name], tensor) for name, tensor in tensors.items())
    assert holdfast.verify(tmp_path / "ours.safetensors") is True
    assert holdfast.verify(tmp_path / "theirs.safetensors") is False


@pytest.mark.parametrize("mode", MODES)
def test_tied_weights_are_stored_once_and_tied_again(tmp_path: Path, mode: str) -> None:
    weight = torch.randn(1000, 10)
    path = tmp_path / "t.safetensors"
    holdfast.save({"embed": weight, "head": weight, "view": weight[5:]}, path)
    assert 80_000 - 200 <= path.stat().st_size < 81_000
    loaded = holdfast.load(path, mode=mode)  # type: ignore[arg-type]
    loaded["embed"][0, 0] = 7
    assert loaded["head"][0, 0] == 7
    assert same(loaded["view"], weight[5:])
    assert same(holdfast.load(path, mode=mode, names=["head"])["head"], weight)  # type: ignore[arg-type]


def test_views_are_stored_as_what_they_show(tmp_path: Path) -> None:
    huge = torch.arange(1_000_000, dtype=torch.float32)
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    pairs = torch.randn(6, dtype=torch.complex64)
    tensors = {"few": huge[10:13], "turned": torch.randn(3, 4).T, "image": image, "pairs": pairs, "conj": pairs.conj()}
    tensors |= {"imag": pairs.imag, "negated": pairs.conj().imag}
    holdfast.save(tensors, tmp_path / "t.safetensors")
    assert (tmp_path / "t.safetensors").stat().st_size < 5000
    loaded = holdfast.load(tmp_path / "t.safetensors")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())


def test_names_alone_are_loaded_and_a_missing_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    tensors = {name: torch.randn(5) for name in "abc"}
    holdfast.save(tensors, path)
    for mode in MODES:
        some = holdfast.load(path, mode=mode, names=["c", "a"])  # type: ignore[arg-type]
        assert list(some) == ["c", "a"] and same(some["c"], tensors["c"]) and same(some["a"], tensors["a"])
        with pytest.raises(ValueError, match="t.safetensors: .*holds no tensor zed"):
            holdfast.load(path, mode=mode, names=["a", "zed"])  # type: ignore[arg-type]


def test_nothing_but_metadata_is_a_file_too(tmp_path: Path) -> None:
    holdfast.save({}, tmp_path / "t.safetensors", metadata={"k": "v"})
    assert holdfast.load(tmp_path / "t.safetensors") == {} == holdfast.load(tmp_path / "t.safetensors", mode="map")


def test_writing_to_a_mapped_tensor_changes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    holdfast.save({"a": torch.zeros(4)}, path)
    before = path.read_bytes()
    holdfast.load(path, mode="map")["a"].fill_(1)
    assert path.read_bytes() == before


def test_who_has_a_file_mapped_keeps_it_when_it_is_saved_over(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    holdfast.save({"a": torch.ones(100_000)}, path)
    mapped = holdfast.load(path, mode="map")["a"]
    holdfast.save({"a": torch.zeros(100_000)}, path)
    assert mapped.sum() == 100_000
    assert holdfast.load(path)["a"].sum() == 0
    assert [each.name for each in tmp_path.iterdir()] == ["t.safetensors"]


def test_tensors_of_another_writer_that_are_not_aligned_load(tmp_path: Path) -> None:
    header = {
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
    }
    text = json.dumps(header).encode()
    data = b"\x07" + struct.pack("<2f", 1.5, -2)
    (tmp_path / "t.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    for mode in MODES:
        loaded = holdfast.load(tmp_path / "t.safetensors", mode=mode)  # type: ignore[arg-type]
        assert loaded["b"].tolist() == [1.5, -2] and loaded["a"].tolist() == [7]


def test_a_flipped_bit_is_an_error_that_names_file_tensor_and_chunk(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    holdfast.save({"w": torch.zeros(10)}, path)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="t.safetensors: .*tensor w: chunk 0 .*checksum; restore"):
        holdfast.load(path)
    with pytest.raises(ValueError, match="tensor w"):
        holdfast.verify(path)
    assert holdfast.load(path, mode="map")["w"].shape == (10,)


def test_what_cannot_be_stored_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    for bad in (torch.zeros(2, dtype=torch.complex128), torch.eye(2).to_sparse(), torch.empty(2, device="meta"), 3):
        with pytest.raises(TypeError, match="^layer.w: "):
            holdfast.save({"layer.w": bad}, path)  # type: ignore[dict-item]
    for name in ("", "a\0b", "__metadata__", "x" * 70_000):
        with pytest.raises(ValueError, match="t.safetensors"):
            holdfast.save({name: torch.zeros(1)}, path)
    with pytest.raises(ValueError, match="mode"):
        holdfast.load(path, mode="lazy")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="t.safetensors"):
        holdfast.load(path)
    with pytest.raises(FileNotFoundError):
        holdfast.save({}, tmp_path / "no" / "t.safetensors")


def test_a_header_that_claims_the_world_is_refused_in_little_memory(tmp_path: Path) -> None:
    for claim in (2**62, 2**40, 99_999_999, 2**64 - 1):
        (tmp_path / "t.safetensors").write_bytes(struct.pack("<Q", claim) + b"{}")
        for mode in MODES:
            with pytest.raises(ValueError, match="t.safetensors"):
                holdfast.load(tmp_path / "t.safetensors", mode=mode)  # type: ignore[arg-type]


def test_the_mode_of_a_saved_file_is_that_of_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        holdfast.save({}, tmp_path / "t.safetensors")
    finally:
        os.umask(before)
    assert (tmp_path / "t.safetensors").stat().st_mode & 0o777 == 0o640


def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    holdfast.save({"n": torch.full((100_000,), -1)}, path)
    program = (
        "import sys, torch, holdfast\n"
        "print('ready', flush=True)\n"
        "for n in range(10**9):\n"
        "    holdfast.save({'n': torch.full((100_000,), n)}, sys.argv[1])\n"
    )
    for delay in (0.0, 0.01, 0.03):
        with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                writer.wait(delay)
            except subprocess.TimeoutExpired:
                writer.kill()
        found = holdfast.load(path)["n"]
        assert (found == found[0]).all()


def test_s17_a_tensor_above_two_gib_is_written_whole(tmp_path: Path) -> None:
    """More than the kernel takes in one write."""
    size = (1 << 31) + 5
    large = torch.zeros(size, dtype=torch.uint8)
    large[-1] = 7
    holdfast.save({"large": large}, tmp_path / "large")
    del large
    assert (tmp_path / "large").stat().st_size > size
    mapped = holdfast.load(tmp_path / "large", mode="map")["large"]
    assert mapped[-1] == 7 and mapped.numel() == size
    assert holdfast.verify(tmp_path / "large") is True
