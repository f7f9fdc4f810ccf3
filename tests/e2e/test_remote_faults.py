"""What networks and servers do wrong: it is waited out, gone on after, or refused in one line; never a wrong byte."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch

import holdfast
from fault_proxy import Fault, FaultProxy, Request
from servers import S3, Nginx

WANTED = {"a": torch.randn(3_000_000), "b": torch.randn(1_500_001)}
START = 256 << 10  # what opening a file asks for


@pytest.fixture(scope="module", autouse=True)
def file(nginx: Nginx) -> None:
    holdfast.save(WANTED, nginx.www / "f")


@pytest.fixture
def load(faulty_nginx: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Request]]:
    """Loads "f" with these faults on one connection and checks every byte; what was asked for."""
    monkeypatch.setenv("HOLDFAST_REMOTE_STALL_S", "1")
    monkeypatch.setenv("HOLDFAST_REMOTE_CONNECTIONS", "1")

    def run(*faults: Fault) -> list[Request]:
        faulty_nginx.plan(*faults)
        found = holdfast.load(f"{faulty_nginx.url}/f")
        assert all(torch.equal(found[name], WANTED[name]) for name in WANTED)
        assert faulty_nginx.unused() == []
        return faulty_nginx.requests

    return run


def opening(request: Request) -> bool:
    return request.range == (0, START)


def reading(request: Request) -> bool:
    return not opening(request)


@pytest.mark.parametrize("kind", ["reset", "end", "stall"])
def test_a_broken_answer_is_gone_on_with_from_the_byte_reached(load: Callable[..., list[Request]], kind: str) -> None:
    requests = load(Fault(kind, of=reading, after=3_000_000))
    first, second = (request.range or (0, 0) for request in requests[1:3])
    assert first[1] == second[1] and first[0] < second[0] <= first[0] + 3_000_000
    if kind != "reset":  # which may overtake bytes on their way
        assert second[0] == first[0] + 3_000_000


@pytest.mark.parametrize("which", [opening, reading])
@pytest.mark.parametrize(
    "fault",
    [
        Fault("reset", times=2, after=-1),
        Fault("end", times=2, after=100),
        Fault("stall", after=0),
        Fault("slow", after=20),
        Fault("status", times=2, status=500),
        Fault("status", times=2, status=503, headers={"Retry-After": "0"}),
        Fault("status", times=1, status=429, headers={"Retry-After": "1"}),
        Fault("status", times=2, status=503, headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}),
        Fault("whole"),
        Fault("change", times=2, headers={"Content-Range": "bytes 7-1000/18000000"}),
        Fault("change", times=2, headers={"Content-Range": ""}),
        Fault("change", headers={"Content-Length": "18446744073709551615"}),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}-{fault.headers}" if isinstance(fault, Fault) else fault.__name__,
)
def test_what_passes_is_waited_out(
    load: Callable[..., list[Request]], fault: Fault, which: Callable[[Request], bool]
) -> None:
    load(Fault(**{**fault.__dict__, "of": which}))


@pytest.mark.parametrize(
    "fault, error, says",
    [
        (Fault("status", times=99, status=503), OSError, r"busy \(HTTP 503\); tried 2 times"),
        (Fault("reset", times=99, after=-1), OSError, "tried 2 times"),
        (Fault("status", times=99, status=404), FileNotFoundError, r"no such file \(HTTP 404\)"),
        (Fault("status", times=99, status=403), PermissionError, r"access denied \(HTTP 403\)"),
        (Fault("status", times=99, status=412), OSError, "changed while it was read; load it again"),
        (Fault("status", times=99, status=416), OSError, "changed while it was read; load it again"),
        (Fault("status", status=200, headers={"Content-Encoding": "gzip"}), ValueError, "sends it encoded .gzip."),
        (Fault("change", times=99, headers={"ETag": '"other"'}), OSError, "changed while it was read; load it again"),
        (Fault("change", times=99, headers={"Content-Range": "bytes 0-9/10"}), OSError, 'got "bytes 0-9/10"'),
        (Fault("change", times=99, headers={"Content-Range": "junk\x01"}), OSError, 'got "junk "'),
    ],
    ids=lambda value: f"{value.kind}-{value.status}-{value.headers}" if isinstance(value, Fault) else None,
)
def test_what_stays_is_refused_in_one_line(
    faulty_nginx: FaultProxy, monkeypatch: pytest.MonkeyPatch, fault: Fault, error: type[Exception], says: str
) -> None:
    monkeypatch.setenv("HOLDFAST_REMOTE_TRIES", "2")
    faulty_nginx.plan(Fault(**{**fault.__dict__, "of": reading}))
    with pytest.raises(error, match=says) as refused:
        holdfast.load(f"{faulty_nginx.url}/f?key=hidden")
    assert f"{faulty_nginx.url}/f: " in str(refused.value)
    assert "\n" not in str(refused.value) and "hidden" not in str(refused.value)


def test_a_file_replaced_between_two_requests_is_never_mixed(nginx: Nginx, faulty_nginx: FaultProxy) -> None:
    other = nginx.www / "other"
    holdfast.save({name: tensor + 1 for name, tensor in WANTED.items()}, other)
    holdfast.save(WANTED, nginx.www / "replaced")
    os.utime(other, (1, 1))  # nginx makes its ETag of size and second

    def replaced(request: Request) -> bool:
        if reading(request) and other.exists():
            os.replace(other, nginx.www / "replaced")
        return False

    faulty_nginx.plan(Fault("reset", of=replaced))
    with pytest.raises(OSError, match="/replaced: changed while it was read; load it again"):
        holdfast.load(f"{faulty_nginx.url}/replaced")


def test_an_opening_without_a_size_is_refused(faulty_nginx: FaultProxy) -> None:
    endless = Fault("change", headers={"Content-Length": "", "Content-Range": "bytes 0-262143/*"})
    faulty_nginx.plan(Fault(**{**endless.__dict__, "times": 9}))
    with pytest.raises(OSError, match="asked for its start, got"):
        holdfast.load(f"{faulty_nginx.url}/f")


def test_a_redirect_leads_to_the_web_alone(faulty_nginx: FaultProxy) -> None:
    faulty_nginx.plan(Fault("status", times=9, status=302, headers={"Location": "file:///etc/passwd"}))
    with pytest.raises(OSError, match=f"{faulty_nginx.url}/f: "):
        holdfast.load(f"{faulty_nginx.url}/f")


def test_credentials_stay_with_the_host_they_are_for(nginx: Nginx, faulty_nginx: FaultProxy) -> None:
    elsewhere = FaultProxy(nginx.port)
    try:
        other = elsewhere.url.replace("127.0.0.1", "localhost")
        faulty_nginx.plan(Fault("status", times=9, status=302, headers={"Location": f"{other}/private/x"}))
        with pytest.raises(OSError):
            holdfast.load(faulty_nginx.url.replace("http://", "http://me:pw@") + "/f")
        assert "authorization" in faulty_nginx.requests[0].headers
        assert elsewhere.requests and "authorization" not in elsewhere.requests[0].headers
    finally:
        elsewhere.close()


def saved(faulty_s3: FaultProxy, tensors: dict[str, torch.Tensor], *faults: Fault) -> list[Request]:
    faulty_s3.plan(*faults)
    holdfast.save(tensors, "s3://models/f")
    assert faulty_s3.unused() == []
    requests = faulty_s3.requests
    faulty_s3.plan()
    found = holdfast.load("s3://models/f")
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    return requests


def is_part(request: Request) -> bool:
    return "partNumber=" in request.path


def is_completion(request: Request) -> bool:
    return request.method == "POST" and "uploadId=" in request.path


@pytest.mark.parametrize(
    "fault",
    [
        Fault("reset", times=3, after=-1, of=is_part),
        Fault("lost", times=2, of=is_part),
        Fault("garble", times=2, of=is_part),
        Fault("status", times=3, status=503, of=is_part, body=b"<Error><Code>SlowDown</Code></Error>"),
        Fault("status", status=500, of=is_completion),
        Fault("lost", of=is_completion),
        Fault("reset", after=-1, of=lambda request: "uploads=" in request.path),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}",
)
def test_writing_outlives_what_passes(s3: S3, faulty_s3: FaultProxy, fault: Fault) -> None:
    saved(faulty_s3, WANTED, Fault(**fault.__dict__))


def test_a_small_object_outlives_what_passes(faulty_s3: FaultProxy) -> None:
    small = {"w": torch.arange(9)}
    saved(faulty_s3, small, Fault("lost"), Fault("garble"), Fault("status", status=503), Fault("reset", after=-1))


def test_an_error_in_an_answer_that_began_well_is_one(faulty_s3: FaultProxy) -> None:
    body = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>We failed</Message></Error>"
    faulty_s3.plan(Fault("status", status=200, of=is_completion, body=body))
    with pytest.raises(OSError, match="s3://models/late: InternalError: We failed"):
        holdfast.save(WANTED, "s3://models/late")
    with pytest.raises(FileNotFoundError):
        holdfast.load("s3://models/late")
