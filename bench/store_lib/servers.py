"""The model's files behind servers of this machine: those that the tests use, nginx and versitygw."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUCKET = "models"


@dataclass(frozen=True)
class Servers:
    http: str  # up to a file's name
    s3: str
    environment: dict[str, str]  # of who loads from S3

    def address(self, over: str, name: str) -> str:
        return {"http": self.http, "s3": self.s3}[over] + name


def put(file: Path, bucket: Path) -> None:
    """As if it had been uploaded: the same file, so that the page cache needs no room for a second."""
    os.link(file, bucket / file.name)
    tag = hashlib.md5(file.name.encode(), usedforsecurity=False).hexdigest()
    os.setxattr(file, "user.etag", f'"{tag}"'.encode())


@contextmanager
def serving(root: Path, folder: Path, names: list[str]) -> Iterator[Servers]:
    """The files of `folder` with these names, until the block ends."""
    sys.path.insert(0, str(root / "tests" / "e2e"))
    from servers import NGINX, S3, VERSITYGW, Nginx, client_environment

    for program in (NGINX, VERSITYGW):
        if not program.exists():
            raise SystemExit(f"bench/store: there is no {program}; run `tools/setup test`")
    places = folder / "nginx", folder / "s3"
    for place in places:
        place.mkdir()
    nginx = Nginx(places[0])
    try:
        s3 = S3(places[1])
        try:
            s3.make_bucket(BUCKET)
            for name in names:
                os.link(folder / name, nginx.www / name)
                put(folder / name, places[1] / "data" / BUCKET)
            yield Servers(f"{nginx.url}/", f"s3://{BUCKET}/", client_environment(s3.url))
        finally:
            s3.close()
    finally:
        nginx.close()
