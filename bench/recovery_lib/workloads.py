"""What the ranks compute: the same for every launcher."""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from holdfast.demo.corpus import Windows, load_corpus
from holdfast.demo.model import Decoder, DecoderConfig

CASES = ("sleep50_1mb", "demo", "bare_1mb")


class Workload:
    """A model, its optimizer and the work of one step. `model` is bare; `wrap` puts it into the process group."""

    model: nn.Module
    optimizer: torch.optim.Optimizer

    def __init__(self) -> None:
        self.parallel: nn.Module | None = None

    def wrap(self) -> DistributedDataParallel:
        parallel = DistributedDataParallel(self.model)
        self.parallel = parallel
        return parallel

    def loss(self, step: int, rank: int, ranks: int) -> Tensor:
        raise NotImplementedError

    def step(self, step: int, rank: int, ranks: int) -> float:
        loss = self.loss(step, rank, ranks)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()


class Linears(Workload):
    """Five linear layers: 0.33 MB of weights and twice that of AdamW's moments; then a sleep."""

    def __init__(self, sleep_s: float) -> None:
        super().__init__()
        self.sleep_s = sleep_s
        self.model = nn.Sequential(*(nn.Linear(128, 128) for _ in range(5)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(8, 128)

    def loss(self, step: int, rank: int, ranks: int) -> Tensor:
        assert self.parallel is not None
        loss: Tensor = self.parallel(self.batch + 1.0 / (step + rank + 1)).square().mean()
        if self.sleep_s:
            time.sleep(self.sleep_s)
        return loss


class DemoSteps(Workload):
    """The demo's decoder on the demo's text."""

    def __init__(self, batch: int = 4) -> None:
        super().__init__()
        self.model = Decoder(DecoderConfig())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.windows = Windows(load_corpus(), DecoderConfig().context)
        self.batch = batch

    def loss(self, step: int, rank: int, ranks: int) -> Tensor:
        assert self.parallel is not None
        first = (step * ranks + rank) * self.batch
        tokens = torch.stack([self.windows[(first + i) % len(self.windows)] for i in range(self.batch)])
        logits = self.parallel(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def make(case: str) -> Workload:
    """The workload called `case`, with the same weights everywhere."""
    torch.manual_seed(1)
    if case == "demo":
        return DemoSteps()
    return Linears(sleep_s=0.05 if case == "sleep50_1mb" else 0.0)
