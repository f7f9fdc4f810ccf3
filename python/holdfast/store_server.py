"""Hosts the store in which plain scripts meet: `python -m holdfast.store_server`, one for each start of the ranks.

Prints "port N" and serves on the loopback (or HOLDFAST_STORE_HOST) until it is killed or its agent dies. A process of
its own, since the store's threads would spoil the fork server and a rank may die.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

from holdfast import process


def listen(host: str) -> socket.socket:
    """Bound to a port that nobody else can have."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.bind((host, 0))
    sock.listen(1024)
    return sock


def main() -> int:
    process.die_with_parent(process.agent_pid())
    process.set_title("holdfast store")
    from torch._C._distributed_c10d import TCPStore

    host = os.environ.get("HOLDFAST_STORE_HOST", "127.0.0.1")
    sock = listen(host)
    port = sock.getsockname()[1]
    # The store owns the descriptor from here on. It counts no ranks: they come and go.
    store = TCPStore(host, port, None, is_master=True, wait_for_workers=False, master_listen_fd=sock.detach())
    print(f"port {store.port}", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
