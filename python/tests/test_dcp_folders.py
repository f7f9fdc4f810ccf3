"""Folders of torch.distributed.checkpoint: those that two ranks write load here, whatever the layout; those written
here load there. S28 in part."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from test_archives import BINARY, TYPES, outcome, random_tensor, same

import holdfast

TWO_RANKS = """
    import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    rank, meeting, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    def spread(tensor, *placements):
        return distribute_tensor(tensor, mesh, placements)
    def whole(*shape):
        return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
    state = {
        "rows": spread(whole(6, 4), Shard(0)),
        "columns": spread(whole(4, 6), Shard(1)),
        "middle": spread(whole(3, 4, 5), Shard(1)),
        "uneven": spread(whole(5, 3), Shard(0)),
        "short": spread(whole(1, 3), Shard(0)),
        "alike": spread(whole(2, 2), Replicate()),
        "plain": whole(3),
        "half": spread(whole(4, 4).bfloat16(), Shard(1)),
        "nested": {"list": [whole(2), 7], "step": rank * 0 + 5},
    }
    dcp.save(state, checkpoint_id=folder)
    dist.destroy_process_group()
"""


def whole(*shape: int) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dcp")
    script = folder / "two_ranks.py"
    script.write_text(textwrap.dedent(TWO_RANKS))
    command = [sys.executable, "-W", "ignore", str(script)]
    ranks = [
        subprocess.Popen([*command, str(rank), str(folder / "meeting"), str(folder / "ckpt")], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for rank in ranks:
        _, complaint = rank.communicate(timeout=120)
        assert rank.returncode == 0, complaint.decode()
    return folder / "ckpt"


def test_what_two_ranks_wrote_loads_whole(written: Path) -> None:
    loaded = holdfast.load(written)
    expected = {
        "rows": whole(6, 4),
        "columns": whole(4, 6),
        "middle": whole(3, 4, 5),
        "uneven": whole(5, 3),
        "short": whole(1, 3),
        "alike": whole(2, 2),
        "plain": whole(3),
        "half": whole(4, 4).bfloat16(),
        "nested.list.0": whole(2),
    }
    assert set(loaded) == set(expected)
    assert all(same(loaded[name], tensor) for name, tensor in expected.items())
    assert len(list(written.glob("*.distcp"))) == 2
    assert holdfast.verify(written) is True
    only = holdfast.load(written, names=["middle"])
    assert list(only) == ["middle"] and same(only["middle"], expected["middle"])
    with pytest.raises(ValueError, match="what it calls nested.step is no tensor"):
        holdfast.load(written, names=["nested.step"])


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_goes_there_and_back(tmp_path: Path, dtype: torch.dtype) -> None:
    tensors = {"matrix": random_tensor(dtype, 3, 4), "none": random_tensor(dtype, 0, 2), "row": random_tensor(dtype, 6)}
    if dtype != torch.float4_e2m1fn_x2:
        tensors["scalar"] = random_tensor(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(dict(tensors), checkpoint_id=tmp_path / "theirs", no_dist=True)
    loaded = holdfast.load(tmp_path / "theirs")
    assert set(loaded) == set(tensors)
    assert all(same(loaded[name], tensor) for name, tensor in tensors.items())

    convert(tmp_path / "theirs", tmp_path / "ours", "--to", "dcp")
    back = {name: torch.empty_like(tensor) for name, tensor in tensors.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(back, checkpoint_id=tmp_path / "ours", no_dist=True)
    assert all(same(back[name], tensor) for name, tensor in tensors.items())


def test_tied_tensors_are_kept_once_and_load_there_under_both_names(tmp_path: Path) -> None:
    weight = torch.randn(1000, 10)
    holdfast.save({"embed": weight, "head": weight}, tmp_path / "t.safetensors")
    convert(tmp_path / "t.safetensors", tmp_path / "ckpt", "--to", "dcp")
    assert (tmp_path / "ckpt" / "__0_0.distcp").stat().st_size < 42_000
    back = {"embed": torch.zeros(1000, 10), "head": torch.zeros(1000, 10)}
    dcp.load(back, checkpoint_id=tmp_path / "ckpt", no_dist=True)
    assert same(back["embed"], weight) and same(back["head"], weight)
    loaded = holdfast.load(tmp_path / "ckpt")
    assert loaded["embed"].data_ptr() == loaded["head"].data_ptr() and same(loaded["head"], weight)


def test_a_file_that_is_damaged_cut_off_or_missing_is_named(written: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    for damage, says in (
        (lambda data: data[:-100], "cut off"),
        (lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :], ""),
    ):
        shutil.copytree(written, folder, dirs_exist_ok=True)
        data = (folder / "__0_0.distcp").read_bytes()
        (folder / "__0_0.distcp").write_bytes(damage(data))  # type: ignore[no-untyped-call]
        found = outcome(folder, None)
        assert isinstance(found, str) and "__0_0.distcp" in found and says in found
    (folder / "__0_0.distcp").unlink()
    with pytest.raises(FileNotFoundError, match="__0_0.distcp"):
        holdfast.load(folder)
    whole_metadata = (written / ".metadata").read_bytes()
    for end in range(0, len(whole_metadata), 5):
        (folder / ".metadata").write_bytes(whole_metadata[:end])
        assert isinstance(outcome(folder, None), str)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        holdfast.load(tmp_path / "nowhere")


def changed(written: Path, folder: Path, change: Any) -> Path:
    shutil.copytree(written, folder, dirs_exist_ok=True)
    metadata = pickle.loads((written / ".metadata").read_bytes())
    change(metadata)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    return folder


def test_elements_kept_twice_or_nowhere_and_strange_places_are_refused(written: Path, tmp_path: Path) -> None:
    def drop_chunk(metadata: Any) -> None:
        metadata.state_dict_metadata["rows"].chunks.pop()

    def repeat_chunk(metadata: Any) -> None:
        metadata.state_dict_metadata["rows"].chunks.append(metadata.state_dict_metadata["rows"].chunks[0])

    def move_chunk(metadata: Any) -> None:
        metadata.state_dict_metadata["rows"].chunks[1].offsets = torch.Size([2, 0])

    def leave(metadata: Any) -> None:
        metadata.state_dict_metadata["rows"].chunks[1].offsets = torch.Size([4, 0])

    def item_of(metadata: Any, name: str) -> Any:
        return next(item for index, item in metadata.storage_data.items() if index.fqn == name)

    def elsewhere(metadata: Any) -> None:
        item_of(metadata, "plain").relative_path = "../ckpt/__0_0.distcp"

    def beyond(metadata: Any) -> None:
        item_of(metadata, "plain").offset = 2**60

    def other_item(metadata: Any) -> None:
        item, wrong = item_of(metadata, "plain"), item_of(metadata, "alike")
        item.relative_path, item.offset, item.length = wrong.relative_path, wrong.offset, wrong.length

    def compressed(metadata: Any) -> None:
        item_of(metadata, "plain").transform_descriptors = ["stream.zstd"]

    for change, says in (
        (drop_chunk, "tensor rows: 12 of its 24 elements are kept nowhere"),
        (repeat_chunk, "tensor rows: .*overlap"),
        (move_chunk, "tensor rows: .*overlap"),
        (leave, "tensor rows: .*outside the tensor"),
        (elsewhere, "plain: kept outside the folder"),
        (beyond, "tensor plain: .*lies outside"),
        (other_item, "tensor plain: .*holds a tensor of .2, 2."),
        (compressed, "tensor plain: its writer's extensions"),
    ):
        with pytest.raises(ValueError, match=says):
            holdfast.load(changed(written, tmp_path / "ckpt", change))


def test_metadata_that_would_run_code_is_refused(written: Path, tmp_path: Path) -> None:
    from test_archives import Runs

    touched = tmp_path / "touched"

    def poison(metadata: Any) -> None:
        metadata.storage_meta = Runs(exec, f"open({str(touched)!r}, 'w')")

    with pytest.raises(ValueError, match=".metadata: checkpoint: pickle: byte .* names builtins.exec"):
        holdfast.load(changed(written, tmp_path / "ckpt", poison))
    assert not touched.exists()


def test_a_folder_with_a_checkpoint_is_not_written_over(written: Path, tmp_path: Path) -> None:
    holdfast.save({"a": torch.ones(1)}, tmp_path / "t.safetensors")
    shutil.copytree(written, tmp_path / "ckpt")
    done = subprocess.run(
        [BINARY, "tensors", "convert", tmp_path / "t.safetensors", tmp_path / "ckpt", "--to", "dcp"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "holds a checkpoint already; name another folder" in done.stderr
    assert set(holdfast.load(tmp_path / "ckpt")) == set(holdfast.load(written))


def convert(*words: str | Path) -> None:
    done = subprocess.run([BINARY, "tensors", "convert", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
