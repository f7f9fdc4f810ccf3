"""Models in several files with an index: saved, loaded and walked through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

import holdfast
from holdfast import sharded, tensors

MODES = ("copy", "map")
INDEX = "model.safetensors.index.json"


def model() -> dict[str, torch.Tensor]:
    """4 MB in ten layers, a small one and two tied ones."""
    state = {f"layers.{n}.weight": torch.randn(100, 1000) for n in range(10)}
    state["bias"] = torch.randn(7).bfloat16()
    state["head"] = state["layers.0.weight"]
    return state


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return set(one) == set(other) and all(torch.equal(one[name], other[name]) for name in one)


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("by", ["folder", "index"])
def test_what_is_saved_in_several_files_comes_back(tmp_path: Path, mode: str, by: str) -> None:
    state = model()
    holdfast.save(state, tmp_path / "m", max_shard_bytes="1MB")
    assert files(tmp_path / "m") == [*(f"model-0000{n}-of-00005.safetensors" for n in range(1, 6)), INDEX]
    path = tmp_path / "m" if by == "folder" else tmp_path / "m" / INDEX
    loaded = holdfast.load(path, mode=mode)  # type: ignore[arg-type]
    assert same(loaded, state)
    loaded["head"][0, 0] = 7
    assert loaded["layers.0.weight"][0, 0] == 7
    assert holdfast.verify(path) is True


def test_the_index_is_as_others_write_it(tmp_path: Path) -> None:
    state = model()
    holdfast.save(state, tmp_path / "m", max_shard_bytes=1_000_000)
    index = json.loads((tmp_path / "m" / INDEX).read_text())
    assert index["metadata"]["total_size"] == 10 * 400_000 + 14
    assert set(index["weight_map"]) == set(state) - {"head"}
    for name, file in index["weight_map"].items():
        assert torch.equal(safetensors.torch.load_file(tmp_path / "m" / file)[name], state[name])
        assert (tmp_path / "m" / file).stat().st_size < 1_010_000


def test_a_folder_is_enough_to_say_so_and_a_small_model_is_one_file(tmp_path: Path) -> None:
    holdfast.save(model(), tmp_path)
    assert files(tmp_path) == ["model.safetensors"]
    assert same(holdfast.load(tmp_path), holdfast.load(tmp_path / "model.safetensors"))


def test_names_alone_are_read_from_their_files_alone(tmp_path: Path) -> None:
    state = model()
    holdfast.save(state, tmp_path / "m", max_shard_bytes="1MB")
    damaged = tmp_path / "m" / "model-00002-of-00005.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    some = holdfast.load(tmp_path / "m", names=["bias", "head"])
    assert list(some) == ["bias", "head"] and torch.equal(some["head"], state["head"])
    with pytest.raises(ValueError, match="model-00002-of-00005.safetensors: .*checksum; restore"):
        holdfast.load(tmp_path / "m")
    with pytest.raises(ValueError, match="model-00002-of-00005.safetensors: .*checksum; restore"):
        holdfast.verify(tmp_path / "m")
    with pytest.raises(ValueError, match="holds no tensor zed"):
        holdfast.load(tmp_path / "m", names=["bias", "zed"])


@pytest.mark.parametrize("first, second", [("1MB", "1MB"), ("1MB", "9MB"), ("9MB", "1MB"), ("1MB", "2MB")])
def test_a_save_replaces_the_model_and_leaves_nothing_of_it(tmp_path: Path, first: str, second: str) -> None:
    holdfast.save(model(), tmp_path, max_shard_bytes=first)
    state = model()
    holdfast.save(state, tmp_path, max_shard_bytes=second)
    assert same(holdfast.load(tmp_path), state)
    if second == "9MB":
        assert files(tmp_path) == ["model.safetensors"]
    else:
        index = json.loads((tmp_path / INDEX).read_text())
        assert files(tmp_path) == sorted([*set(index["weight_map"].values()), INDEX])


def test_what_cannot_be_saved_leaves_the_old_model(tmp_path: Path) -> None:
    state = model()
    holdfast.save(state, tmp_path, max_shard_bytes="1MB")
    with pytest.raises(ValueError, match="NUL"):
        holdfast.save({**model(), "a\0b": torch.ones(3)}, tmp_path, max_shard_bytes="1MB")
    with pytest.raises(TypeError, match="^sparse: "):
        holdfast.save({**model(), "sparse": torch.eye(2).to_sparse()}, tmp_path, max_shard_bytes="1MB")
    with pytest.raises(ValueError, match="5GB"):
        holdfast.save(state, tmp_path, max_shard_bytes="big")
    assert same(holdfast.load(tmp_path), state)
    assert len(files(tmp_path)) == 6


@pytest.mark.parametrize("names", [["model-00001-of-00005.safetensors"], ["model-00003-of-00005.safetensors"]])
def test_a_missing_file_is_named(tmp_path: Path, names: list[str]) -> None:
    holdfast.save(model(), tmp_path, max_shard_bytes="1MB")
    (tmp_path / names[0]).unlink()
    with pytest.raises(ValueError, match=f"index.json: .*{names[0]}.*fetch or write the model again"):
        holdfast.load(tmp_path)


def test_bad_indexes_are_refused_by_name(tmp_path: Path) -> None:
    holdfast.save({"a": torch.zeros(2)}, tmp_path / "one.safetensors")
    holdfast.save({"a": torch.zeros(2)}, tmp_path / "two.safetensors")
    for index, says in [
        ('{"weight_map": {"a": "../one.safetensors"}}', "tensor a: the file name"),
        ('{"weight_map": {"a": "/etc/passwd"}}', "tensor a: the file name"),
        ('{"weight_map": {"b": "one.safetensors"}}', "tensor b is not in one.safetensors"),
        ('{"weight_map": {"a": "one.safetensors", "a": "two.safetensors"}}', "duplicate tensor a"),
        ('{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}', "tensor a is both in"),
        ('{"weight_map": 3}', "weight_map"),
        ("{}", "no weight_map"),
        ("[[", "where the index belongs"),
        ("", "not JSON"),
    ]:
        (tmp_path / INDEX).write_text(index)
        with pytest.raises(ValueError, match=f"index.json: .*{says}.*fetch or write the model again"):
            holdfast.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        holdfast.load(tmp_path / "none.index.json")
    with pytest.raises(ValueError, match="holds neither"):
        holdfast.load(tmp_path.parent)


def test_weights_walks_through_all_files_and_tied_names(tmp_path: Path) -> None:
    state = model()
    holdfast.save(state, tmp_path / "m", max_shard_bytes="1MB")
    holdfast.save(state, tmp_path / "m.safetensors")
    for path in (tmp_path / "m", tmp_path / "m" / INDEX, tmp_path / "m.safetensors"):
        walked = list(holdfast.weights(path))
        assert len(walked) == len(state)
        assert same(dict(walked), state)
        tied = dict(walked)
        assert tied["head"].data_ptr() == tied["layers.0.weight"].data_ptr()


# S29
def test_weights_reads_a_window_at_a_time_and_what_it_gave_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = model()
    holdfast.save(state, tmp_path / "m.safetensors")
    sizes = []
    load = tensors.load

    def watched(*args: object, **options: object) -> dict[str, torch.Tensor]:
        loaded = load(*args, **options)  # type: ignore[arg-type]
        storages = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in loaded.values()}
        sizes.append(sum(storages.values()))
        return loaded

    monkeypatch.setattr(tensors, "load", watched)
    walked = dict(sharded.weights(tmp_path / "m.safetensors", window_bytes=900_000))
    assert same(walked, state)
    assert len(sizes) == 5 and max(sizes) <= 900_000


def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new_model(tmp_path: Path) -> None:
    def state(n: int) -> dict[str, torch.Tensor]:
        return {f"w{i}": torch.full((20_000,), n) for i in range(5)}

    holdfast.save(state(-1), tmp_path, max_shard_bytes="200kB")
    program = (
        "import sys, torch, holdfast\n"
        "print('ready', flush=True)\n"
        "for n in range(10**9):\n"
        "    state = {f'w{i}': torch.full((20_000,), n) for i in range(5)}\n"
        "    holdfast.save(state, sys.argv[1], max_shard_bytes=['200kB', '9MB', '400kB'][n % 3])\n"
    )
    for delay in (0.0, 0.01, 0.03):
        with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                writer.wait(delay)
            except subprocess.TimeoutExpired:
                writer.kill()
        found = holdfast.load(tmp_path)
        assert len(found) == 5
        assert len({int(each[0]) for each in found.values()}) == 1
        assert all((each == each[0]).all() for each in found.values())
