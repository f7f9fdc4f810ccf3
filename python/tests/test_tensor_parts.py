"""Streams, slices and loads into memory that is there: what comes is what `load` gives."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import holdfast
from holdfast import progress


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, dict[str, torch.Tensor]]:
    """Some 24 MiB: large tensors and small ones, of several types, one of no elements, tied ones."""
    generator = torch.Generator().manual_seed(1)
    tensors = {f"layer.{i}.weight": torch.randn(700 + i, 1024, generator=generator).bfloat16() for i in range(16)}
    tensors |= {f"layer.{i}.norm": torch.randn(1024, generator=generator) for i in range(16)}
    tensors["none"] = torch.zeros(0, 3)
    tensors["scalar"] = torch.tensor(5)
    tensors["tied"] = tensors["layer.3.weight"]
    holdfast.save(tensors, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors", tensors


def evict(path: Path) -> None:
    with open(path, "rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def flip(path: Path, tensor: torch.Tensor, data: bytes) -> None:
    """One bit of `tensor`, which is where its bytes are in `data`."""
    at = data.index(bytes(tensor.view(torch.uint8).flatten()[:64].tolist()))
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(bytes([data[at] ^ 1]))


@pytest.mark.parametrize("cold", [False, True])
def test_a_file_loads_the_same_from_the_page_cache_and_past_it(
    model: tuple[Path, dict[str, torch.Tensor]], cold: bool
) -> None:
    path, tensors = model
    for checksums in (True, False):
        for names in (None, ["layer.9.weight", "layer.2.norm"]):
            if cold:
                evict(path)
            loaded = holdfast.load(path, names=names, checksums=checksums)
            assert set(loaded) == set(names or tensors)
            assert all(same(tensor, tensors[name]) for name, tensor in loaded.items())


@pytest.mark.parametrize("window_bytes", [1, 3 << 20, 64 << 20])
def test_a_stream_gives_every_tensor_once_in_the_order_of_the_file(
    model: tuple[Path, dict[str, torch.Tensor]], window_bytes: int
) -> None:
    path, tensors = model
    evict(path)
    arrived = dict(holdfast.stream(path, window_bytes=window_bytes))
    assert set(arrived) == set(tensors)
    # S29: all of them are used after the stream is done.
    assert all(same(arrived[name], tensor) for name, tensor in tensors.items())
    arrived["tied"][0, 0] = 7
    assert arrived["layer.3.weight"][0, 0] == 7


def test_a_stream_gives_tensors_in_the_order_asked_for(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, tensors = model
    names = ["tied", "layer.7.norm", "scalar", "layer.3.weight", "none", "layer.0.weight"]
    arrived = list(holdfast.stream(path, names))
    assert [name for name, _ in arrived] == names
    assert all(same(tensor, tensors[name]) for name, tensor in arrived)
    with pytest.raises(ValueError, match="m.safetensors: .*holds no tensor zed"):
        holdfast.stream(path, ["scalar", "zed"])
    with pytest.raises(FileNotFoundError):
        holdfast.stream(path.with_name("no"))


def test_a_stream_meets_a_flipped_bit_at_its_tensor(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, tensors = model
    flip(path, tensors["layer.8.weight"], path.read_bytes())
    arrived = []
    with pytest.raises(ValueError, match="m.safetensors: .*layer.8.weight.*checksum"):
        for name, tensor in holdfast.stream(path):
            assert same(tensor, tensors[name])
            arrived.append(name)
    assert "layer.7.norm" in arrived and "layer.8.weight" not in arrived
    assert same(dict(holdfast.stream(path, checksums=False))["layer.1.weight"], tensors["layer.1.weight"])


def test_a_closed_stream_ends_and_what_it_gave_stays(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, tensors = model
    with holdfast.stream(path, window_bytes=1 << 20) as arriving:
        name, tensor = next(arriving)
    assert list(arriving) == []
    assert same(tensor, tensors[name])


def test_a_stream_that_is_dropped_half_way_leaves_no_thread(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, _ = model
    before = len(os.listdir("/proc/self/task"))
    for _ in range(5):
        arriving = holdfast.stream(path, window_bytes=1)
        next(arriving)
        del arriving
    deadline = time.monotonic() + 30
    while len(os.listdir("/proc/self/task")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) <= before


CUTS = [
    (slice(None),),
    (slice(100, 300),),
    (slice(-1, None),),
    (slice(None), slice(512, 1024)),
    (slice(5, 650), slice(1, 3)),
    (slice(7, 3),),
    (),
]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("mode", ["copy", "map"])
def test_a_slice_is_what_indexing_gives(
    model: tuple[Path, dict[str, torch.Tensor]], cut: tuple[slice, ...], mode: str
) -> None:
    path, tensors = model
    evict(path)
    names = ["layer.5.weight", "tied", "layer.3.weight"]
    how: Any = mode
    loaded = holdfast.load(path, mode=how, slices={name: cut for name in names}, names=["scalar"])
    assert list(loaded) == ["scalar", *names]
    assert same(loaded["scalar"], tensors["scalar"])
    assert all(same(loaded[name], tensors[name][cut]) for name in names)


def test_slices_of_more_dimensions_and_of_packed_elements(tmp_path: Path) -> None:
    cube = torch.randint(0, 100, (6, 5, 4, 3), dtype=torch.int16)
    packed = torch.randint(0, 256, (8, 4), dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    holdfast.save({"cube": cube, "packed": packed}, tmp_path / "t")
    box = (slice(1, 4), slice(2, 3), slice(0, 4), slice(1, 3))
    for cut in [box, (slice(0, 6), slice(1, 5)), (slice(2, 3), slice(4))]:
        assert same(holdfast.load(tmp_path / "t", slices={"cube": cut})["cube"], cube[cut])
    part = holdfast.load(tmp_path / "t", slices={"packed": (slice(2, 5), slice(1, 3))})["packed"]
    assert torch.equal(part.view(torch.uint8), packed.view(torch.uint8)[2:5, 1:3])


def test_rows_are_checked_where_all_of_a_chunk_is_read(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, tensors = model
    name = "layer.8.weight"
    data = path.read_bytes()
    with open(path, "r+b") as file:  # in the middle of the tensor, in a chunk that it does not share
        at = data.index(bytes(tensors[name].view(torch.uint8).flatten()[:64].tolist())) + tensors[name].nbytes // 2
        file.seek(at)
        file.write(bytes([data[at] ^ 1]))
    few_rows = holdfast.load(path, slices={"layer.9.weight": slice(10, 20)})["layer.9.weight"]
    assert same(few_rows, tensors["layer.9.weight"][10:20])
    with pytest.raises(ValueError, match="layer.8.weight"):
        holdfast.load(path, names=[name])


def test_a_slice_that_makes_no_sense_is_refused(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, _ = model
    for cut, error in [((slice(0, 9, 2),), "step 2"), ((slice(1),) * 3, "2 dimensions")]:
        with pytest.raises(ValueError, match=f"m.safetensors: tensor layer.0.weight.*{error}"):
            holdfast.load(path, slices={"layer.0.weight": cut})
    with pytest.raises(TypeError, match="layer.0.weight"):
        holdfast.load(path, slices={"layer.0.weight": (3,)})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="holds no tensor zed"):
        holdfast.load(path, slices={"zed": slice(1)})
    with pytest.raises(ValueError, match="into"):
        holdfast.load(path, into={}, names=[])


def test_tensors_are_filled_where_they_are(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, tensors = model
    into = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    into["layer.4.weight"] = torch.zeros(1024, 704, dtype=torch.bfloat16).T  # not row-major: copied
    into["layer.5.norm"] = torch.nn.Parameter(torch.zeros(1024))
    before = {name: tensor.data_ptr() for name, tensor in into.items()}
    assert holdfast.load(path, into=into) == into
    assert all(same(into[name].detach(), tensor) for name, tensor in tensors.items())
    assert before == {name: tensor.data_ptr() for name, tensor in into.items()}


def test_tensors_that_differ_from_the_file_are_not_filled(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, _ = model
    wrong = [torch.zeros(3), torch.zeros(700, 1024), torch.zeros(1024, 700, dtype=torch.bfloat16), torch.zeros(9, 9).T]
    for each in wrong:
        with pytest.raises(ValueError, match="m.safetensors: .*tensor layer.0.weight is .*700, 1024"):
            holdfast.load(path, into={"layer.0.weight": each})
        assert not each.any()
    with pytest.raises(TypeError, match="scalar"):
        holdfast.load(path, into={"scalar": 3})  # type: ignore[dict-item]


def test_progress_is_told_and_ends_at_the_whole(model: tuple[Path, dict[str, torch.Tensor]], tmp_path: Path) -> None:
    path, tensors = model
    told: list[tuple[int, int]] = []
    holdfast.load(path, progress=lambda *now: told.append(now))
    holdfast.save(tensors, tmp_path / "again", progress=lambda *now: told.append(now))
    size = sum(tensor.nbytes for name, tensor in tensors.items() if name != "tied")
    assert told[-1] == (size, size) and all(0 <= done <= whole == size for done, whole in told)
    assert progress.line("load m", 5, 10, 1.0) == "load m [###############               ]  50% 0.00 GB/s"


def test_memory_of_a_load_that_is_gone_serves_the_next_and_is_bounded(tmp_path: Path) -> None:
    program = (
        "import sys, torch, holdfast\n"
        "path = sys.argv[1]\n"
        "holdfast.save({'a': torch.ones(8 << 20)}, path)\n"
        "loaded = holdfast.load(path)\n"
        "assert holdfast.kept_memory() < 32 << 20\n"
        "del loaded\n"
        "kept = holdfast.kept_memory()\n"
        "assert kept >= 32 << 20, kept\n"
        "loaded = holdfast.load(path)\n"
        "assert loaded['a'].sum() == 8 << 20\n"
        "assert holdfast.kept_memory() <= kept - (32 << 20)\n"
        "holdfast.keep_memory(0)\n"
        "assert holdfast.kept_memory() == 0\n"
        "del loaded\n"
        "assert holdfast.kept_memory() == 0\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "t")], check=True)
    limited = os.environ | {"HOLDFAST_KEEP_MEMORY_BYTES": "0"}
    program = "import sys, holdfast\nholdfast.load(sys.argv[1])\nassert holdfast.kept_memory() == 0\n"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "t")], check=True, env=limited)
    failed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "t")],
        env=os.environ | {"HOLDFAST_KEEP_MEMORY_BYTES": "much"},
        capture_output=True,
        text=True,
    )
    assert failed.returncode != 0 and "HOLDFAST_KEEP_MEMORY_BYTES is a number of bytes, not 'much'" in failed.stderr


def test_pinned_or_foreign_memory_is_filled_as_any_other(model: tuple[Path, dict[str, torch.Tensor]]) -> None:
    path, tensors = model
    size = tensors["layer.6.weight"].nbytes
    memory = (ctypes.c_ubyte * size)()
    tensor = torch.frombuffer(memory, dtype=torch.bfloat16).reshape(tensors["layer.6.weight"].shape)
    holdfast.load(path, into={"layer.6.weight": tensor})
    assert bytes(memory) == bytes(tensors["layer.6.weight"].view(torch.uint8).flatten().tolist())
