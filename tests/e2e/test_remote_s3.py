"""Tensor files read from S3 and written there, by way of versitygw."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

import holdfast
from fault_proxy import Fault, FaultProxy
from servers import S3

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"
SMALL = {"w": torch.arange(100)}


def large() -> dict[str, torch.Tensor]:
    """22 MB: three parts."""
    return {"a": torch.randn(4_000_000), "b": torch.randn(1_500_001), "tied": torch.ones(3)}


def same(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> bool:
    return set(found) == set(wanted) and all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("key", ["small", "dir/a model+ü%20.safetensors", "a=b&c;d"])
def test_what_is_saved_is_loaded_under_any_key(s3: S3, key: str) -> None:
    holdfast.save(SMALL, f"s3://models/{key}")
    assert same(holdfast.load(f"s3://models/{key}"), SMALL)


def test_a_large_file_is_written_in_parts_and_replaces_the_old(faulty_s3: FaultProxy) -> None:
    for wanted in (large(), large()):
        faulty_s3.plan()
        holdfast.save(wanted, "s3://models/large")
        parts = [request for request in faulty_s3.requests if request.method == "PUT"]
        assert len(parts) == 3 and all("partNumber=" in request.path for request in parts)
        assert same(holdfast.load("s3://models/large"), wanted)
        assert holdfast.verify("s3://models/large") is True
    b = holdfast.load("s3://models/large", names=["b"])
    assert same(b, {"b": wanted["b"]})


def test_a_small_file_is_one_request_each_way(faulty_s3: FaultProxy) -> None:
    holdfast.save(SMALL, "s3://models/one")
    assert [request.method for request in faulty_s3.requests] == ["PUT"]
    faulty_s3.plan()
    assert same(holdfast.load("s3://models/one"), SMALL)
    assert [request.method for request in faulty_s3.requests] == ["GET"]


# S32: an S3 error names cause, key and status.
def test_errors_carry_the_code_of_s3(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="s3://models/none: no such file .HTTP 404, NoSuchKey: "):
        holdfast.load("s3://models/none")
    with pytest.raises(FileNotFoundError, match="s3://no-bucket/x: .*NoSuchBucket"):
        holdfast.save(SMALL, "s3://no-bucket/x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(PermissionError, match="s3://models/none: access denied .HTTP 403, SignatureDoesNotMatch"):
        holdfast.load("s3://models/none")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(PermissionError, match="s3://models/none: "):
        holdfast.load("s3://models/none")


def test_a_location_that_is_none_is_a_value_error(s3: S3) -> None:
    for bad in ("s3://models", "s3://models/", "s3:///key", "s3://mod els/key", "s3://models/" + "k" * 1025):
        with pytest.raises(ValueError, match="s3://"):
            holdfast.load(bad)
        with pytest.raises(ValueError, match="s3://"):
            holdfast.save(SMALL, bad)


def test_a_failed_save_leaves_the_old_object_and_no_parts(s3: S3, faulty_s3: FaultProxy) -> None:
    old = large()
    holdfast.save(old, "s3://models/kept")
    faulty_s3.plan(Fault("status", times=99, status=403, of=lambda request: "partNumber=2" in request.path))
    with pytest.raises(PermissionError, match="s3://models/kept: access denied"):
        holdfast.save(large(), "s3://models/kept")
    faulty_s3.plan()
    assert same(holdfast.load("s3://models/kept"), old)
    assert s3.unfinished("models") == []


def test_the_command_verifies_objects(s3: S3) -> None:
    holdfast.save(SMALL, "s3://models/t")
    done = subprocess.run([BINARY, "tensors", "verify", "s3://models/t"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "s3://models/t: 1 tensor, 800 B, every byte matches its checksum\n"
