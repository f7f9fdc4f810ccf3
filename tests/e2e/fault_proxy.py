"""A proxy between a client and a real server that does to answers what networks and servers do, as a test lists it."""

from __future__ import annotations

import http.client
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]  # names in lower case

    @property
    def range(self) -> tuple[int, int] | None:
        """First byte asked for, and one past the last."""
        text = self.headers.get("range")
        if text is None:
            return None
        first, last = text.removeprefix("bytes=").split("-")
        return int(first), int(last) + 1


def any_request(request: Request) -> bool:
    return True


@dataclass
class Fault:
    """What happens to the answers of the first `times` requests that are `of` its kind.

    reset: the connection is reset after `after` bytes of the body; before the server was asked where it is -1.
    end: the same, but closed in good order. stall: it says nothing more. slow: a byte each 10 ms for `after` bytes.
    lost: the server did its work, and its answer is dropped. status: answered with `status`, `headers` and `body`
    instead. change: `headers` are put in place of the answer's own. whole: the server is asked without a Range.
    garble: a byte of what the client sent arrives changed.
    """

    kind: str
    times: int = 1
    of: Callable[[Request], bool] = any_request
    after: int = 0
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class FaultProxy:
    """Listens on `url` in front of the server at `port`; `requests` are all that came, in their order."""

    def __init__(self, port: int) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._upstream = port
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                proxy._serve(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def plan(self, *faults: Fault) -> None:
        """Forgets what came and went before."""
        with self._lock:
            self._faults = list(faults)
            self.requests = []
            self.connections = 0

    def unused(self) -> list[Fault]:
        return [fault for fault in self._faults if fault.times > 0]

    def _take(self, request: Request) -> Fault | None:
        with self._lock:
            self.requests.append(request)
            for fault in self._faults:
                if fault.times > 0 and fault.of(request):
                    fault.times -= 1
                    return fault
        return None

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self.connections += 1
        try:
            with client.makefile("rb") as stream:
                while self._exchange(client, stream):
                    pass
        except OSError:
            pass  # the client has had enough

    def _exchange(self, client: socket.socket, stream: object) -> bool:
        head = []
        while line := stream.readline():  # type: ignore[attr-defined]
            if line in (b"\r\n", b"\n"):
                break
            head.append(line.decode("latin-1").rstrip("\r\n"))
        if not head:
            return False
        method, path, _ = head[0].split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = stream.read(int(headers.get("content-length", 0)))  # type: ignore[attr-defined]
        request = Request(method, path, headers)
        fault = self._take(request)
        if fault is not None and fault.kind == "reset" and fault.after < 0:
            return self._reset(client)
        if fault is not None and fault.kind == "status":
            return self._send(client, method, fault.status, dict(fault.headers), fault.body, None)
        if fault is not None and fault.kind == "whole":
            head = [line for line in head if not line.lower().startswith("range:")]
        if fault is not None and fault.kind == "garble":
            body = body[:-1] + bytes([body[-1] ^ 1])
        status, answer, content = self._ask(method, "\r\n".join(head), body)
        if fault is not None and fault.kind == "lost":
            return self._reset(client)
        if fault is not None and fault.kind == "change":
            wanted = {name.lower() for name in fault.headers}
            answer = {name: value for name, value in answer.items() if name.lower() not in wanted} | fault.headers
            if fault.body:
                content = fault.body
        return self._send(client, method, status, answer, content, fault)

    def _ask(self, method: str, head: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        with socket.create_connection(("127.0.0.1", self._upstream)) as upstream:
            upstream.sendall(head.encode("latin-1") + b"\r\n\r\n" + body)
            answer = http.client.HTTPResponse(upstream, method=method)
            answer.begin()
            content = answer.read()
            dropped = ("connection", "transfer-encoding", "content-length", "keep-alive")
            headers = {name: value for name, value in answer.getheaders() if name.lower() not in dropped}
            if method == "HEAD":
                headers["Content-Length"] = answer.headers.get("content-length", "0")
            return answer.status, headers, content

    def _send(
        self, client: socket.socket, method: str, status: int, headers: dict[str, str], body: bytes, fault: Fault | None
    ) -> bool:
        if method != "HEAD" and "Content-Length" not in headers:
            headers["Content-Length"] = str(len(body))
        lines = [f"HTTP/1.1 {status} Answer", *(f"{name}: {value}" for name, value in headers.items() if value)]
        client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if fault is None or fault.kind not in ("reset", "end", "stall", "slow"):
            client.sendall(body)
            return True
        if fault.kind == "slow":
            for at in range(min(fault.after, len(body))):
                client.sendall(body[at : at + 1])
                time.sleep(0.01)
            client.sendall(body[fault.after :])
            return True
        client.sendall(body[: fault.after])
        if fault.kind == "reset":
            time.sleep(0.05)  # a reset overtakes what the client has not read yet
            return self._reset(client)
        if fault.kind == "stall":
            self._closing.wait()
        return False

    @staticmethod
    def _reset(client: socket.socket) -> bool:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        return False
