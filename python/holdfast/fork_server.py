"""Forks ranks from a process that has imported torch: `python -m holdfast.fork_server [--preload MODULE]...`

Talks to the agent over the socket HOLDFAST_FORK_FD (docs/format-fork-server.md). It must stay without threads: a child
forked from a process with threads may hang in a lock that nobody will ever release.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass, field

from holdfast import __version__, _core, child, process

_PACKET_MAX = 192 * 1024
_DESCRIPTORS_MAX = 8
# What a rank imports lazily at its first use: without these the first optimizer alone takes a second.
_MODULES = [
    "torch",
    "torch.distributed",
    "torch.nn.parallel",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch._dynamo",
    "torch.distributed.elastic.multiprocessing.errors",
    "torch.testing._internal.distributed.fake_pg",
    "holdfast.joining",
    "holdfast.probe",
    "holdfast.run",
    "holdfast.worker",
    "holdfast.warm_up",
]


@dataclass
class Imports:
    """What importing did to this process."""

    threads: int = 1
    thread_modules: list[str] = field(default_factory=list)
    error: str = ""


def check_environment() -> str:
    """Why this process would get threads from its libraries, or ""."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name) != "1":
            return f"{name} must be 1 before this process starts: its library starts threads when it is loaded"
    return ""


def import_all(preload: list[str]) -> Imports:
    result = Imports()
    for name in [*_MODULES, *preload]:
        before = process.threads()
        try:
            importlib.import_module(name)
        except Exception as error:
            result.error = f"import {name}: {type(error).__name__}: {error}"
            break
        if process.threads() > before:
            result.thread_modules.append(name)
    result.threads = process.threads()
    return result


def greeting(imports: Imports) -> dict[str, object]:
    if imports.error:
        return {"ready": False, "why": imports.error}
    return {
        "ready": True,
        "threads": imports.threads,
        "version": __version__,
        "thread_modules": imports.thread_modules,
    }


def serve(sock: socket.socket) -> child.Job | None:
    """Forks on request until the agent closes the socket (None). In a forked child: the job it has to do."""
    while True:
        packet, descriptors, _, _ = socket.recv_fds(sock, _PACKET_MAX, _DESCRIPTORS_MAX, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            return None
        request_id: object = None
        try:
            request = json.loads(packet)
            request_id = request["fork"]
            job = child.Job.from_request(request, descriptors)
            pid = _core.fork_twice()
            if pid == 0:
                return job
            answer: dict[str, object] = {"forked": request_id, "pid": pid}
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            answer = {"failed": request_id, "why": f"{type(error).__name__}: {error}"}
        for descriptor in descriptors:
            os.close(descriptor)
        sock.send(json.dumps(answer).encode())


def main() -> int:
    parser = argparse.ArgumentParser(prog="holdfast.fork_server", description=__doc__)
    parser.add_argument("--preload", action="append", default=[], help="module to import before the first fork")
    options = parser.parse_args()
    sock = socket.socket(fileno=int(os.environ.pop("HOLDFAST_FORK_FD")))
    process.die_with_parent(process.agent_pid())
    process.set_title("holdfast fork server")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the launcher's to handle; it closes the socket

    gc.disable()  # a collection here would leave holes in pages that the children share
    why = check_environment()
    imports = Imports(error=why) if why else import_all(options.preload)
    hello = greeting(imports)
    gc.freeze()
    sock.send(json.dumps(hello).encode())
    if not hello["ready"]:
        return 1
    job = serve(sock)
    if job is None:
        os._exit(0)  # there is nothing to tidy up, and tidying up all of torch takes a while
    sock.close()
    child.run(job)


if __name__ == "__main__":
    sys.exit(main())
