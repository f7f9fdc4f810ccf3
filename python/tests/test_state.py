"""State taken apart and put together again, exactly and without pickle."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, deque
from enum import IntEnum
from typing import Any

import numpy
import pytest
import torch

from holdfast import state, transfer
from holdfast.tracked import Tracked


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        if one.is_floating_point():
            one, other = one.nan_to_num(1.5), other.nan_to_num(1.5)
        equal = torch.equal(one, other)
        return one.dtype == other.dtype and one.shape == other.shape and equal
    if isinstance(one, numpy.ndarray | numpy.generic):
        return type(one) is type(other) and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return type(one) is type(other) and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple | deque):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or one != one)


def back(value: Any) -> Any:
    """`value` after a journey as bytes."""
    return state.unflatten(transfer.unpack(transfer.pack(state.flatten(value))))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**70),
        0.1,
        float("inf"),
        float("nan"),
        "text",
        b"\x00\xff",
        1 + 2j,
        [],
        {},
        (1, (2, [3])),
        {1: "a", (2, 3): "b", None: 0, "$": 1},
        {"$": "a key of ours"},
        Counter({3: 2, 6: 1}),
        OrderedDict(b=1, a=2),
        {1, 2},
        frozenset({"x"}),
        deque([1, 2]),
        torch.bfloat16,
        torch.device("cpu"),
        torch.tensor(3.5),
        torch.empty(0, 4),
        torch.arange(6).reshape(2, 3).t(),
        torch.tensor([1.0, float("nan")], dtype=torch.float16),
        torch.tensor([1 + 2j]),
        torch.tensor([True, False]),
        numpy.float32(0.1),
        numpy.arange(6, dtype=numpy.int16).reshape(3, 2),
        {"a.b": torch.ones(1), "a": {"b": torch.zeros(2)}},
    ],
    ids=repr,
)
def test_comes_back_as_it_was(value: Any) -> None:
    assert same(value, back(value))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64])
def test_rare_types_of_elements_come_back_bit_for_bit(dtype: torch.dtype) -> None:
    raw = torch.arange(32, dtype=torch.uint8)
    assert torch.equal(back(raw.view(dtype)).view(torch.uint8), raw)


def test_tied_weights_are_kept_once() -> None:
    weight = torch.ones(3)
    flat = state.flatten({"one": weight, "two": weight, "other": torch.ones(3)})
    assert len(flat.tensors) == 2
    values = state.unflatten(flat)
    assert values["one"] is values["two"]


def test_tensors_are_the_live_ones() -> None:
    weight = torch.nn.Parameter(torch.zeros(3))
    flat = state.flatten({"w": weight})
    with torch.no_grad():
        weight += 1
    assert torch.equal(flat.tensors["w"], torch.ones(3))
    assert not flat.tensors["w"].requires_grad


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize("value", [object(), lambda: 0, Colour.RED, torch.eye(2).to_sparse(), numpy.array(["a"])])
def test_what_cannot_be_stored_is_named_by_its_place(value: Any) -> None:
    with pytest.raises(TypeError, match=r"scheduler\.inner"):
        state.flatten({"scheduler": {"inner": value}})


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="novelty"):
        state.unflatten(state.Flat(json.dumps({"$": "novelty"})))


def optimizers(parameters: list[torch.nn.Parameter]) -> list[torch.optim.Optimizer]:
    return [
        torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        torch.optim.AdamW(parameters, lr=0.1, amsgrad=True),
        torch.optim.Adagrad(parameters),
        torch.optim.RMSprop(parameters, centered=True),
    ]


@pytest.mark.parametrize("kind", range(4))
def test_optimizers_go_on_as_if_nothing_had_been(kind: int) -> None:
    def fresh() -> tuple[torch.nn.Linear, torch.optim.Optimizer]:
        torch.manual_seed(kind)
        model = torch.nn.Linear(3, 2)
        return model, optimizers(list(model.parameters()))[kind]

    def step(model: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        model(torch.ones(1, 3)).square().sum().backward()
        optimizer.step()

    def track(model: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> Tracked:
        tracked = Tracked()
        tracked.add("model", model)
        tracked.add("optimizer", optimizer)
        return tracked

    original, copy = fresh(), fresh()
    for _ in range(3):
        step(*original)
    track(*copy).restore(transfer.unpack(transfer.pack(track(*original).collect())))
    step(*original)
    step(*copy)
    assert track(*original).collect().structure == track(*copy).collect().structure
    for name, tensor in track(*original).collect().tensors.items():
        assert torch.equal(tensor, track(*copy).collect().tensors[name]), name


def test_an_optimizer_keeps_state_finer_than_its_parameters() -> None:
    model = torch.nn.Linear(2, 2).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    fine = torch.tensor([[1.0001, 2.0001], [3.0001, 4.0001]])
    optimizer.state[model.weight]["momentum_buffer"] = fine
    tracked = Tracked()
    tracked.add("optimizer", optimizer)
    tracked.restore(tracked.collect().clone())
    assert torch.equal(optimizer.state[model.weight]["momentum_buffer"], fine)


def test_schedulers_and_scalers_come_back() -> None:
    def make() -> tuple[Tracked, list[Any]]:
        optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
        first = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=3)
        second = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 2, 4])
        chain = torch.optim.lr_scheduler.SequentialLR(optimizer, [first, second], milestones=[3])
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        scaler = torch.amp.GradScaler("cpu")
        tracked = Tracked()
        for name, thing in (("chain", chain), ("plateau", plateau), ("scaler", scaler), ("optimizer", optimizer)):
            tracked.add(name, thing)
        return tracked, [optimizer, chain, plateau]

    (one, (optimizer, chain, plateau)), (other, things) = make(), make()
    for loss in (1.0, 2.0, 3.0, 4.0):
        optimizer.step()
        chain.step()
        plateau.step(loss)
    other.restore(transfer.unpack(transfer.pack(one.collect())))
    assert other.collect().structure == one.collect().structure
    assert things[0].param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]


def test_a_state_of_other_things_is_refused() -> None:
    one, other = Tracked(), Tracked()
    one.add("model", torch.nn.Linear(1, 1))
    other.add("net", torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match=r"\['model'\].*\['net'\]"):
        other.restore(one.collect())


def test_what_has_no_state_cannot_be_tracked() -> None:
    with pytest.raises(TypeError, match="'lr'"):
        Tracked().add("lr", 0.1)
