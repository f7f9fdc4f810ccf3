"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fault_proxy import FaultProxy  # noqa: E402
from launcher import Launch, start  # noqa: E402
from servers import S3, Nginx, Server, client_environment  # noqa: E402


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Launch]]:
    """`launch(words...)` starts `holdfast run` in the test's folder; whatever is left of it is ended with the test."""
    launches: list[Launch] = []

    def begin(*words: str, env: dict[str, str] | None = None) -> Launch:
        launches.append(start(tmp_path, *words, env=env))
        return launches[-1]

    yield begin
    for each in launches:
        each.end()


def running(server: Server | FaultProxy) -> Iterator[object]:
    yield server
    server.close()


@pytest.fixture(scope="session")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    yield from running(Nginx(tmp_path_factory.mktemp("nginx")))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    yield from running(S3(tmp_path_factory.mktemp("s3")))


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server, with a bucket "models", and an environment that leads to it."""
    s3_server.make_bucket("models")
    for name, value in client_environment(s3_server.url).items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def faulty_nginx(nginx: Nginx) -> Iterator[object]:
    yield from running(FaultProxy(nginx.port))


@pytest.fixture
def faulty_s3(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A proxy before `s3`; the environment leads to it."""
    proxy = FaultProxy(s3.port)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.url)
    yield from running(proxy)
