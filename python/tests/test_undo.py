"""A failed step leaves nothing behind."""

from __future__ import annotations

import torch

from holdfast.tracked import Tracked
from holdfast.undo import Undo


def tracked(**things: object) -> Tracked:
    result = Tracked()
    for name, thing in things.items():
        result.add(name, thing)
    return result


def test_batch_norm_statistics_go_back_though_their_change_does_not_show() -> None:
    model = torch.nn.BatchNorm1d(3)
    undo = Undo(tracked(model=model))
    for _ in range(6):
        undo.commit()
        before = [b.clone() for b in model.buffers()]
        model(torch.randn(5, 3))
        assert not torch.equal(model.running_mean, before[0])  # type: ignore[arg-type]
        assert undo.back(optimizer_began=False)
        assert all(torch.equal(a, b) for a, b in zip(before, model.buffers(), strict=True))
        model(torch.randn(5, 3))


def test_a_buffer_without_a_counter_is_followed_by_its_values() -> None:
    class Average(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("spread", torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.batch_norm(x, self.mean, self.spread, training=True)  # type: ignore[arg-type]

    model = Average()
    undo = Undo(tracked(model=model))
    for _ in range(6):
        undo.commit()
        before = [b.clone() for b in model.buffers()]
        model(torch.randn(5, 3))
        undo.back(optimizer_began=False)
        assert all(torch.equal(a, b) for a, b in zip(before, model.buffers(), strict=True))
        model(torch.randn(5, 3))


def test_schedulers_and_learning_rates_go_back() -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    undo = Undo(tracked(optimizer=optimizer, scheduler=scheduler))
    undo.commit()
    optimizer._opt_called = True  # type: ignore[attr-defined]
    scheduler.step()
    assert undo.back(optimizer_began=False)
    assert scheduler.last_epoch == 0 and optimizer.param_groups[0]["lr"] == 1.0


def test_gradients_are_dropped_or_zeroed_as_they_were() -> None:
    model = torch.nn.Linear(2, 1)
    undo = Undo(tracked(model=model))
    undo.commit()
    model(torch.ones(1, 2)).sum().backward()
    undo.back(optimizer_began=False)
    assert model.weight.grad is None
    model.zero_grad()
    model.weight.grad = torch.zeros(1, 2)
    undo.commit()
    model(torch.ones(1, 2)).sum().backward()
    undo.back(optimizer_began=False)
    assert torch.equal(model.weight.grad, torch.zeros(1, 2))


def test_parameters_go_back_only_with_a_copy() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    undo = Undo(tracked(model=model, optimizer=optimizer))

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    undo.commit()
    step()
    assert not undo.back(optimizer_began=True)
    undo.commit()
    for _ in range(2):
        undo.keep()
        before = tracked(model=model, optimizer=optimizer).collect().clone()
        step()
        assert undo.back(optimizer_began=True)
        after = tracked(model=model, optimizer=optimizer).collect()
        assert after.structure == before.structure
        assert all(torch.equal(before.tensors[name], tensor) for name, tensor in after.tensors.items())
        step()
        undo.commit()
    step()
    assert not undo.back(optimizer_began=True)  # the copy is of an older state


def test_an_average_of_weights_that_moves_is_noticed() -> None:
    average = torch.optim.swa_utils.AveragedModel(torch.nn.Linear(1, 1))
    undo = Undo(tracked(average=average))
    undo.commit()
    average.update_parameters(torch.nn.Linear(1, 1))
    assert not undo.back(optimizer_began=False)
