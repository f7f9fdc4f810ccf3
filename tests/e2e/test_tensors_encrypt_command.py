"""`holdfast tensors encrypt`, `decrypt`, `rekey`, and reading what they wrote."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

import holdfast

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"


def tensors(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | environment
    return subprocess.run([BINARY, "tensors", *words], capture_output=True, text=True, env=env)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "a model.safetensors"
    holdfast.save({"w": torch.zeros(300, 1000), "step": torch.tensor(7)}, path, metadata={"k": "v"})
    return path


def key_file(folder: Path, name: str, digit: str) -> Path:
    path = folder / name
    path.write_text(digit * 64 + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return key_file(tmp_path, "old.key", "a")


@pytest.fixture
def secret(model: Path, key: Path, tmp_path: Path) -> Path:
    path = tmp_path / "secret.safetensors"
    done = tensors("encrypt", model, path, "--key-file", key)
    assert done.returncode == 0 and done.stderr == "" and "encrypted for key" in done.stdout
    return path


def test_encrypt_and_decrypt_give_the_same_bytes_back(model: Path, secret: Path, key: Path, tmp_path: Path) -> None:
    assert model.stat().st_size < secret.stat().st_size < model.stat().st_size + 10_000
    done = tensors("decrypt", secret, tmp_path / "back", "--key-file", key)
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "back").read_bytes() == model.read_bytes()
    loaded = holdfast.load(secret, key=holdfast.Key.from_file(key))
    assert loaded["step"] == 7


def test_compressed_too(model: Path, key: Path, tmp_path: Path) -> None:
    for option in ("--compress", "--compress=9"):
        assert tensors("encrypt", model, tmp_path / "small", "--key-file", key, option).returncode == 0
        assert (tmp_path / "small").stat().st_size < 20_000
        assert tensors("verify", tmp_path / "small", "--key-file", key).returncode == 0
    assert tensors("encrypt", model, tmp_path / "small", "--key-file", key, "--compress=99").returncode == 2


def test_ls_and_verify_take_a_key(secret: Path, key: Path) -> None:
    done = tensors("ls", secret, "--key-file", key)
    assert done.returncode == 0 and f"{secret}: 2 tensors, 1.20 MB, sealed" in done.stdout
    done = tensors("verify", secret, "--key-env", "MODEL_KEY", MODEL_KEY="a" * 64)
    assert done.returncode == 0 and "every byte is as it was written" in done.stdout
    (only,) = json.loads(tensors("ls", "--json", secret, "--key-command", f"cat '{key}'").stdout)
    assert only["sealed"] is True and only["metadata"]["k"] == "v"


@pytest.mark.parametrize("command", ["ls", "verify"])
def test_without_its_key_a_file_cannot_be_checked(secret: Path, command: str) -> None:
    done = tensors(command, secret)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert str(secret) in done.stderr and "no key was given" in done.stderr and "--key-file" in done.stderr


def test_rekey_changes_the_key_and_nothing_else(secret: Path, key: Path, tmp_path: Path) -> None:
    fresh = key_file(tmp_path, "new.key", "b")
    before = secret.read_bytes()
    done = tensors("rekey", secret, "--key-file", key, "--new-key-file", fresh)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert secret.read_bytes()[4096:] == before[4096:] and secret.read_bytes() != before
    assert tensors("verify", secret, "--key-file", fresh).returncode == 0
    refused = tensors("verify", secret, "--key-file", key)
    assert refused.returncode == 2 and "give the right key" in refused.stderr
    again = tensors("rekey", secret, "--key-file", fresh, "--new-key-env", "K", K="c" * 64)
    assert again.returncode == 0
    assert tensors("verify", secret, "--key-env", "K", K="c" * 64).returncode == 0


def test_a_damaged_file_is_not_copied(model: Path, secret: Path, key: Path, tmp_path: Path) -> None:
    for file, command in ((model, "encrypt"), (secret, "decrypt")):
        damaged = bytearray(file.read_bytes())
        damaged[-1] ^= 1
        file.write_bytes(damaged)
        done = tensors(command, file, tmp_path / "out", "--key-file", key)
        assert done.returncode == 2 and str(file) in done.stderr and "restore the file from a copy" in done.stderr
        assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("*partial*"))


def test_bad_keys_and_bad_usage_are_one_line_and_exit_code_2(model: Path, key: Path, tmp_path: Path) -> None:
    def refused(*words: str | Path) -> str:
        done = tensors("encrypt", model, tmp_path / "out", *words)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
        assert not (tmp_path / "out").exists()
        return done.stderr

    assert "give a key: --key-file" in refused()
    assert "not several" in refused("--key-file", key, "--key-env", "HOME")
    assert "--key-env NO_SUCH" in refused("--key-env", "NO_SUCH")
    assert "failed instead" in refused("--key-command", "false")
    assert "a key is" in refused("--key-command", "echo short")
    assert "can't be read" in refused("--key-file", tmp_path / "none")
    key.chmod(0o640)
    assert "others can read this key; chmod 600" in refused("--key-file", key)
    assert tensors("rekey", model, "--key-command", f"cat '{key}'").returncode == 2
    for command in ("encrypt", "decrypt", "rekey"):
        assert "Example" in tensors(command, "--help").stdout
