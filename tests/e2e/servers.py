"""Real servers on loopback for a test session: nginx with a folder, versitygw with buckets."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NGINX = Path("/usr/sbin/nginx")
VERSITYGW = ROOT / "build" / "servers" / "versitygw"
KEY, SECRET = "tests-key", "tests/secret+"
PATIENCE_S = 60.0  # no passing test waits for it


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A process that listens on a port of its own; ended with `close`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for _ in range(3):  # another process may take the port before the server does
            self.port = free_port()
            self.log = (folder / "server.log").open("ab")
            self.process = subprocess.Popen(
                self.command(), env={**os.environ, **self.environment()}, stdout=self.log, stderr=self.log
            )
            if self._answers():
                return
            self.close()
        raise RuntimeError(f"{self.command()[0]} did not start: {(folder / 'server.log').read_text()}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def _answers(self) -> bool:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.01)
        return False

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Nginx(Server):
    """Serves the folder `www`; below /private/ only to user "me" with password "pw"; /moved/ leads to /, and /whole/
    is / without ranges. At `tls_url` the same with the certificate `certificate`, which no one else trusts."""

    def __init__(self, folder: Path) -> None:
        self.www = folder / "www"
        (self.www / "private").mkdir(parents=True)
        self.certificate, self._key = folder / "certificate.pem", folder / "key.pem"
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", str(self._key), "-out", str(self.certificate)]
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        subprocess.run([*make, *subject, *files], check=True, capture_output=True)
        super().__init__(folder)

    @property
    def tls_url(self) -> str:
        return f"https://127.0.0.1:{self.tls_port}"

    def command(self) -> list[str]:
        user = "user root;" if os.geteuid() == 0 else ""
        self.tls_port = free_port()
        (self.folder / "passwords").write_text("me:{PLAIN}pw\n")
        (self.folder / "nginx.conf").write_text(
            f"daemon off; {user} worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error.log;\n"
            "events { worker_connections 256; }\n"
            f"http {{ access_log off; client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/proxy;\n"
            f"fastcgi_temp_path {self.folder}/f; uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;\n"
            f"sendfile on; server {{ listen 127.0.0.1:{self.port}; listen 127.0.0.1:{self.tls_port} ssl;\n"
            f"listen 127.0.0.2:{self.tls_port} ssl;\n"
            f"ssl_certificate {self.certificate}; ssl_certificate_key {self._key}; root {self.www};\n"
            f'location /private/ {{ auth_basic "x"; auth_basic_user_file {self.folder}/passwords; }}\n'
            "location /whole/ { max_ranges 0; alias " + f"{self.www}/; }}\n"
            "location /moved/ { rewrite ^/moved/(.*)$ /$1 redirect; } } }\n"
        )
        return [str(NGINX), "-c", str(self.folder / "nginx.conf"), "-e", str(self.folder / "error.log")]


class S3(Server):
    """Objects in buckets, for requests signed with KEY and SECRET."""

    def command(self) -> list[str]:
        (self.folder / "data").mkdir(exist_ok=True)
        address = f"127.0.0.1:{self.port}"
        return [str(VERSITYGW), "--port", address, "--keep-alive", "--quiet", "posix", str(self.folder / "data")]

    def environment(self) -> dict[str, str]:
        return {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}

    def make_bucket(self, name: str) -> None:
        (self.folder / "data" / name).mkdir(exist_ok=True)

    def unfinished(self, bucket: str) -> list[Path]:
        """What uploads that were neither completed nor aborted have left."""
        folder = self.folder / "data" / bucket / ".sgwtmp" / "multipart"
        return [part for part in folder.rglob("*") if part.is_file()]


def client_environment(s3_url: str) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL_S3": s3_url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
