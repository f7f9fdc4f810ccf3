"""How each system loads from a server, and what curl alone takes. As systems.py; S3's keys come by the environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

from store_lib.systems import runai

REGION = "us-east-1"


def file_bytes(url: str, sign: list[str]) -> int:
    """As the server tells it with an answer of one byte."""
    words = ["curl", "--silent", "--fail", "--range", "0-0", "--dump-header", "-", "--output", "/dev/null", *sign, url]
    head = subprocess.run(words, check=True, capture_output=True, text=True).stdout.lower()
    return int(head.split("content-range:")[1].split()[1].split("/")[1])


def curl(processes: int, connections: int) -> Callable[[str], None]:
    """Into nothing, an even part of the file over each of so many connections of each process."""
    sizes: dict[str, int] = {}

    def load(where: str) -> None:
        url, sign = where, list[str]()
        if where.startswith("s3://"):
            url = os.environ["AWS_ENDPOINT_URL_S3"] + "/" + where.removeprefix("s3://")
            keys = os.environ["AWS_ACCESS_KEY_ID"] + ":" + os.environ["AWS_SECRET_ACCESS_KEY"]
            sign = ["--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", keys]
            sign += ["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
        size = sizes.get(url) or sizes.setdefault(url, file_bytes(url, sign))
        parts = processes * connections
        edges = [size * part // parts for part in range(parts + 1)]
        begun = []
        for process in range(processes):
            words = ["curl", "--no-progress-meter", "--parallel", "--parallel-immediate"]
            words += ["--parallel-max", str(connections)]
            for part in range(process * connections, (process + 1) * connections):
                next_one = ["--next"] if part > process * connections else []
                ends = f"{edges[part]}-{edges[part + 1] - 1}"
                words += [*next_one, "--fail", "--range", ends, "--output", "/dev/null", *sign, url]
            begun.append(subprocess.Popen(words))
        if any([each.wait() for each in begun]):
            raise RuntimeError(f"curl failed with {url}")

    return load


def holdfast(**how: Any) -> Callable[[str], Any]:
    import holdfast as module

    return lambda url: module.load(url, **how)


def tensorizer(readers: int) -> Callable[[str], Any]:
    from tensorizer import TensorDeserializer, stream_io

    def load(url: str) -> Any:
        where: dict[str, Any] = {}
        if url.startswith("s3://"):
            where = {
                "s3_endpoint": os.environ["AWS_ENDPOINT_URL_S3"].removeprefix("http://"),
                "s3_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
                "s3_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
                "s3_region_name": REGION,
                "force_http": True,
            }
        with stream_io.open_stream(url, **where) as stream:
            with TensorDeserializer(stream, device="cpu", num_readers=readers) as file:
                return dict(file.items())

    return load


def runai_s3() -> Callable[[str], Any]:
    os.environ["AWS_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL_S3"]
    os.environ["AWS_REGION"] = REGION
    os.environ["RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING"] = "0"
    os.environ["RUNAI_STREAMER_CONCURRENCY"] = "8"
    return runai()


# Each makes its loader after the peer's package is imported, before the first load.
LOADERS: dict[str, Callable[[], Callable[[str], Any]]] = {
    "limit: curl_1x8": lambda: curl(1, 8),
    "limit: curl_2x4": lambda: curl(2, 4),
    "holdfast": holdfast,
    "holdfast_unchecked": lambda: holdfast(checksums=False),
    "tensorizer_1": lambda: tensorizer(1),
    "tensorizer_2": lambda: tensorizer(2),
    "tensorizer_4": lambda: tensorizer(4),
    "runai": runai_s3,
}
