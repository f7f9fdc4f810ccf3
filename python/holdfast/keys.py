"""Keys that tensor files are encrypted with, from where they are kept.

    key = holdfast.Key.from_file("/run/secrets/model.key")  # made with: openssl rand -hex 32
    holdfast.save(tensors, "model.safetensors", key=key)
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence

from holdfast._core import key_id, parse_key

BYTES = 32
COMMAND_TIMEOUT_S = 60


class Key:
    """256 bits that open what they encrypted. `Key(b)`: of 32 bytes, else ValueError. Prints its id alone."""

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes | bytearray | memoryview):
            raise TypeError(f"a key is 32 bytes, not a {type(key).__name__}")
        if len(bytes(key)) != BYTES:
            raise ValueError(f"a key is 32 bytes, not {len(bytes(key))}")
        self._bytes = bytes(key)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Key:
        """32 raw bytes, 64 hexadecimal digits or base64. Errors: ValueError (something else; others may read the
        file), OSError."""
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ValueError(f"{os.fspath(path)}: others can read this key; chmod 600 it")
            return cls._parsed(file.read(4096), True, os.fspath(path))

    @classmethod
    def from_env(cls, name: str) -> Key:
        """Hexadecimal digits or base64 in an environment variable. Errors: ValueError."""
        if name not in os.environ:
            raise ValueError(f"the environment has no {name}; put a key there, as hexadecimal digits or base64")
        return cls._parsed(os.environb[os.fsencode(name)], False, name)

    @classmethod
    def from_command(cls, command: str | Sequence[str]) -> Key:
        """What a command prints: raw, in hexadecimal digits or base64. Text goes to the shell. Errors: ValueError (it
        fails, takes more than a minute, or prints something else), OSError."""
        name = command if isinstance(command, str) else " ".join(command)
        try:
            done = subprocess.run(
                command, shell=isinstance(command, str), stdout=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"{name}: printed no key within {COMMAND_TIMEOUT_S} s") from None
        if done.returncode:
            raise ValueError(f"{name}: ended with {done.returncode} instead of printing a key")
        return cls._parsed(done.stdout, True, name)

    @classmethod
    def _parsed(cls, given: bytes, may_be_raw: bool, where: str) -> Key:
        try:
            return cls(parse_key(given, may_be_raw))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    @property
    def id(self) -> str:
        """Names the key in messages and files, and gives nothing of it away."""
        return key_id(self._bytes)

    def __bytes__(self) -> bytes:
        return self._bytes

    def __repr__(self) -> str:
        return f"Key(id={self.id})"


def key_bytes(key: Key | bytes | None) -> bytes | None:
    """As the core takes it. Errors: TypeError, ValueError."""
    return None if key is None else bytes(key if isinstance(key, Key) else Key(key))
