"""Tensor files read over HTTP from nginx."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

import holdfast
from fault_proxy import FaultProxy
from servers import Nginx

BINARY = Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast"
LARGE = {"a": torch.randn(3_000_000), "b": torch.randn(1_500_001), "c": torch.arange(7)}


@pytest.fixture
def large(nginx: Nginx) -> str:
    """18 MB in several ranges; the name of the file."""
    holdfast.save(LARGE, nginx.www / "large file.safetensors")
    return "large file.safetensors"


def same(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> bool:
    return set(found) == set(wanted) and all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_a_file_is_loaded_as_it_was_saved(nginx: Nginx, large: str) -> None:
    assert same(holdfast.load(f"{nginx.url}/{large}"), LARGE)
    assert holdfast.verify(f"{nginx.url}/{large}") is True


def test_one_connection_is_enough(nginx: Nginx, large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_REMOTE_CONNECTIONS", "1")
    assert same(holdfast.load(f"{nginx.url}/{large}"), LARGE)


def test_a_small_file_is_one_request(nginx: Nginx, faulty_nginx: FaultProxy) -> None:
    wanted = {"w": torch.arange(1000)}
    holdfast.save(wanted, nginx.www / "small")
    assert same(holdfast.load(f"{faulty_nginx.url}/small"), wanted)
    assert len(faulty_nginx.requests) == 1


def test_connections_are_kept_and_no_byte_is_asked_for_twice(faulty_nginx: FaultProxy, large: str) -> None:
    assert same(holdfast.load(f"{faulty_nginx.url}/{large}"), LARGE)
    first, *ranges = sorted(request.range or (0, 0) for request in faulty_nginx.requests)
    assert first == (0, 256 << 10)
    assert all(here[1] == there[0] for here, there in zip(ranges, ranges[1:]))
    assert faulty_nginx.connections <= 8 + 1


def test_names_alone_are_fetched(faulty_nginx: FaultProxy, large: str) -> None:
    assert same(holdfast.load(f"{faulty_nginx.url}/{large}", names=["c"]), {"c": LARGE["c"]})
    asked = sum(end - begin for begin, end in (request.range or (0, 0) for request in faulty_nginx.requests))
    assert asked < 3 << 20


def test_a_server_without_ranges_sends_it_whole(nginx: Nginx, large: str) -> None:
    wanted = {"w": torch.arange(1000)}
    holdfast.save(wanted, nginx.www / "small")
    assert same(holdfast.load(f"{nginx.url}/whole/small"), wanted)
    assert same(holdfast.load(f"{nginx.url}/whole/{large}"), LARGE)
    assert same(holdfast.load(f"{nginx.url}/whole/{large}", names=["b"]), {"b": LARGE["b"]})


def test_an_empty_file_is_refused_as_one(nginx: Nginx) -> None:
    (nginx.www / "empty").write_bytes(b"")
    with pytest.raises(ValueError, match="/empty: .*fewer than 8 bytes"):
        holdfast.load(f"{nginx.url}/empty")


def test_redirects_are_followed(nginx: Nginx, large: str) -> None:
    assert same(holdfast.load(f"{nginx.url}/moved/{large}"), LARGE)


def test_credentials_of_a_url_are_used_and_never_shown(nginx: Nginx) -> None:
    wanted = {"w": torch.arange(3)}
    holdfast.save(wanted, nginx.www / "private" / "t")
    place = f"127.0.0.1:{nginx.port}/private/t"
    assert same(holdfast.load(f"http://me:pw@{place}"), wanted)
    with pytest.raises(PermissionError, match=f"http://{place}: credentials are missing or wrong .HTTP 401") as refused:
        holdfast.load(f"http://me:not-this@{place}?token=hidden")
    assert "not-this" not in str(refused.value) and "hidden" not in str(refused.value)


def test_a_certificate_is_verified(nginx: Nginx, large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PermissionError, match=f"{nginx.tls_url}/x: .*certificate"):
        holdfast.load(f"{nginx.tls_url}/x")
    monkeypatch.setenv("SSL_CERT_FILE", str(nginx.certificate))
    assert same(holdfast.load(f"{nginx.tls_url}/{large}"), LARGE)
    with pytest.raises(PermissionError, match="https://127.0.0.2:.*subject name"):
        holdfast.load(f"{nginx.tls_url.replace('127.0.0.1', '127.0.0.2')}/{large}")


# S32: cause, place and status are in the message.
def test_a_missing_file_says_so(nginx: Nginx) -> None:
    with pytest.raises(FileNotFoundError, match=f"{nginx.url}/none: no such file .HTTP 404"):
        holdfast.load(f"{nginx.url}/none?token=hidden")


def test_a_host_that_does_not_answer_is_told_after_a_few_tries(nginx: Nginx) -> None:
    with pytest.raises(OSError, match="http://127.0.0.1:1/x: .*; tried 3 times"):
        holdfast.load("http://127.0.0.1:1/x")


def test_a_url_is_not_mapped_and_not_written_to(nginx: Nginx) -> None:
    with pytest.raises(ValueError, match='only a file on a disk can be mapped; load it with mode="copy"'):
        holdfast.load(f"{nginx.url}/x", mode="map")
    with pytest.raises(ValueError, match="can't write there; save to a path or to s3://bucket/key"):
        holdfast.save({}, f"{nginx.url}/x")


def test_a_bad_setting_is_named(nginx: Nginx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_REMOTE_CONNECTIONS", "many")
    with pytest.raises(ValueError, match="HOLDFAST_REMOTE_CONNECTIONS is a number from 1 to 256"):
        holdfast.load(f"{nginx.url}/x")


def test_the_command_lists_and_verifies_urls(nginx: Nginx) -> None:
    holdfast.save({"w": torch.arange(3)}, nginx.www / "t")
    url = f"{nginx.url}/t"
    listed = subprocess.run([BINARY, "tensors", "ls", url], capture_output=True, text=True)
    assert listed.returncode == 0 and listed.stdout.startswith(f"{url}: 1 tensor, 24 B, with checksums\n")
    done = subprocess.run([BINARY, "tensors", "verify", url, url + "x?t=hidden"], capture_output=True, text=True)
    assert done.returncode == 2 and "every byte matches" in done.stdout
    assert "no such file (HTTP 404" in done.stderr and "hidden" not in done.stderr
