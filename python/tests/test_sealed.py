"""Encrypted and compressed tensor files from Python, and the keys that open them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

import holdfast

RAW = bytes(range(32))
KEY = holdfast.Key(RAW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.safetensors"


def tensors() -> dict[str, torch.Tensor]:
    weight = torch.randn(700, 900)
    return {"w": weight, "tied": weight, "zeros": torch.zeros(500_000), "none": torch.zeros(0, 3), "n": torch.tensor(7)}


@pytest.mark.parametrize("key, compress", [(KEY, False), (RAW, 3), (None, True), (None, 19)])
def test_what_is_sealed_comes_back(path: Path, key: holdfast.Key | bytes | None, compress: bool | int) -> None:
    saved = tensors()
    holdfast.save(saved, path, metadata={"k": "v"}, key=key, compress=compress)
    loaded = holdfast.load(path, key=key)
    assert set(loaded) == set(saved) and all(torch.equal(loaded[name], saved[name]) for name in saved)
    loaded["w"][0, 0] = 5
    assert loaded["tied"][0, 0] == 5
    some = holdfast.load(path, key=key, names=["tied", "n"])
    assert list(some) == ["tied", "n"] and torch.equal(some["tied"], saved["w"])
    assert holdfast.verify(path, key=key) is True
    assert (path.stat().st_size < 4_000_000) == bool(compress)


def test_the_package_safetensors_sees_one_tensor_of_bytes(path: Path) -> None:
    holdfast.save({"secret_name": torch.ones(300_000)}, path, key=KEY)
    outer = safetensors.torch.load_file(path)
    assert list(outer) == ["holdfast.sealed"] and outer["holdfast.sealed"].dtype == torch.uint8
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"holdfast.sealed": "1 aes-256-gcm"}
    assert b"secret_name" not in path.read_bytes()


def test_files_of_the_package_safetensors_are_left_alone(path: Path) -> None:
    safetensors.torch.save_file({"holdfast.sealed": torch.zeros(9, dtype=torch.uint8)}, path)
    assert holdfast.load(path)["holdfast.sealed"].tolist() == [0] * 9


# S35
def test_s35_saving_encrypted_leaves_the_live_tensors_alone(path: Path) -> None:
    live = torch.randn(1_000_000)
    before = live.clone()
    holdfast.save({"w": live}, path, key=KEY, compress=True)
    assert torch.equal(live, before)


def test_a_missing_a_wrong_and_a_needless_key_are_named(path: Path) -> None:
    holdfast.save({"w": torch.ones(3)}, path, key=KEY)
    for read in (holdfast.load, holdfast.verify):
        with pytest.raises(ValueError, match=f"t.safetensors: .*encrypted for key {KEY.id}.*key= in Python"):
            read(path)
        with pytest.raises(ValueError, match=f"for key {KEY.id}, and key [0-9a-f]{{16}} was given"):
            read(path, key=bytes(32))
    with pytest.raises(ValueError, match="can't be mapped.*copy"):
        holdfast.load(path, mode="map", key=KEY)
    with pytest.raises(ValueError, match="can't be mapped"):
        holdfast.load(path, mode="map")
    holdfast.save({"w": torch.ones(3)}, path)
    with pytest.raises(ValueError, match="t.safetensors: .*is not encrypted"):
        holdfast.load(path, key=KEY)
    with pytest.raises(ValueError, match="is not encrypted"):
        holdfast.load(path, mode="map", key=KEY)


def test_a_flipped_bit_is_an_error_that_names_the_chunk(path: Path) -> None:
    holdfast.save({"w": torch.zeros(10)}, path, key=KEY)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"t.safetensors: .*sealed chunk 1 \(bytes .*tag.*restore"):
        holdfast.load(path, key=KEY)


def test_keys_that_are_none_are_refused(path: Path) -> None:
    for bad in (b"", bytes(31), bytes(33)):
        with pytest.raises(ValueError, match="32 bytes"):
            holdfast.save({}, path, key=bad)
    with pytest.raises(TypeError, match="32 bytes, not a int"):
        holdfast.load(path, key=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="32 bytes, not a str"):
        holdfast.save({}, path, key="x" * 32)  # type: ignore[arg-type]
    for level in (-1, 20, 1000):
        with pytest.raises(ValueError, match="from 1 to 19"):
            holdfast.save({}, path, compress=level)
    assert not path.exists()


def test_a_key_shows_its_id_alone() -> None:
    assert repr(KEY) == f"Key(id={KEY.id})" and len(KEY.id) == 16
    assert bytes(KEY) == RAW and holdfast.Key(bytes(32)).id != KEY.id


@pytest.mark.parametrize("text", [RAW, RAW.hex().encode() + b"\n", b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="])
def test_a_key_is_read_from_a_file_that_its_owner_alone_can_read(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(text)
    file.chmod(0o644)
    with pytest.raises(ValueError, match="key: others can read this key; chmod 600"):
        holdfast.Key.from_file(file)
    file.chmod(0o600)
    assert bytes(holdfast.Key.from_file(file)) == RAW
    file.write_bytes(text[:-2])
    with pytest.raises(ValueError, match="key: a key is 32 raw bytes, 64 hex"):
        holdfast.Key.from_file(file)
    with pytest.raises(FileNotFoundError):
        holdfast.Key.from_file(tmp_path / "none")


def test_a_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", RAW.hex())
    assert bytes(holdfast.Key.from_env("MODEL_KEY")) == RAW
    monkeypatch.setenv("MODEL_KEY", "a password of 32 characters, no?")
    with pytest.raises(ValueError, match="MODEL_KEY: a key is 64 hex"):
        holdfast.Key.from_env("MODEL_KEY")
    with pytest.raises(ValueError, match="has no OTHER_KEY"):
        holdfast.Key.from_env("OTHER_KEY")


def test_a_key_is_what_a_command_prints() -> None:
    assert bytes(holdfast.Key.from_command(f"echo {RAW.hex()}")) == RAW
    program = "import os; os.write(1, bytes(range(32)))"
    assert bytes(holdfast.Key.from_command([sys.executable, "-c", program])) == RAW
    with pytest.raises(ValueError, match="exit 3: ended with 3"):
        holdfast.Key.from_command("exit 3")
    with pytest.raises(ValueError, match="echo no: a key is"):
        holdfast.Key.from_command("echo no")


def test_the_mode_of_an_encrypted_file_is_that_of_any_other(path: Path) -> None:
    before = os.umask(0o027)
    try:
        holdfast.save({}, path, key=KEY)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_an_encrypted_file_is_streamed_sliced_and_loaded_into_what_is_there(path: Path) -> None:
    wanted = tensors()
    holdfast.save(wanted, path, key=KEY)
    with holdfast.stream(path, key=KEY) as arriving:
        streamed = dict(arriving)
    assert set(streamed) == set(wanted) and all(torch.equal(streamed[name], wanted[name]) for name in wanted)
    sliced = holdfast.load(path, slices={"w": (slice(10, 20), slice(3, 5))}, key=KEY)
    assert torch.equal(sliced["w"], wanted["w"][10:20, 3:5])
    into = {"w": torch.zeros(700, 900)}
    assert holdfast.load(path, into=into, key=KEY)["w"] is into["w"] and torch.equal(into["w"], wanted["w"])
    for load in (
        lambda: holdfast.stream(path),
        lambda: holdfast.load(path, slices={"w": slice(0, 1)}),
        lambda: holdfast.load(path, into=into),
    ):
        with pytest.raises(ValueError, match="encrypted"):
            load()
