"""A job to be disturbed: forward, backward, and the gradients summed over the ranks, on all the cores it gets."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

WIDTH, LAYERS, BATCH = 512, 6, 256


class Training:
    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = [part for _ in range(LAYERS) for part in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU())]
        self._model = torch.nn.Sequential(*layers)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)
        self._batch = torch.randn(BATCH, WIDTH)
        count = sum(parameter.numel() for parameter in self._model.parameters())
        self._sum = torch.zeros(count + 1)  # the last one: whether anybody is writing

    def step(self, writing: bool) -> bool:
        """Whether any rank said that it is writing."""
        self._model(self._batch).square().mean().backward()
        parameters = list(self._model.parameters())
        torch.cat([*(p.grad.reshape(-1) for p in parameters if p.grad is not None), torch.tensor([float(writing)])],
                  out=self._sum)
        dist.all_reduce(self._sum)
        at = 0
        for parameter in parameters:
            assert parameter.grad is not None
            parameter.grad.copy_(self._sum[at : at + parameter.numel()].reshape(parameter.shape))
            at += parameter.numel()
        self._optimizer.step()
        self._optimizer.zero_grad()
        return bool(self._sum[-1] > 0)

    def timed(self, writing: bool) -> tuple[float, bool]:
        """Seconds, and what `step` says."""
        began = time.perf_counter()
        anybody = self.step(writing)
        return time.perf_counter() - began, anybody
