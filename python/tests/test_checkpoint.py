"""Who saves what, and the memory that it is copied into."""

from __future__ import annotations

import ctypes

import torch

from holdfast import checkpoint, elements
from holdfast.staging import Staging


def test_every_tensor_is_saved_by_one_rank() -> None:
    sizes = {f"layer{i}": (i * 37) % 11 * 100 for i in range(20)}
    shares = [checkpoint.share(sizes, rank, 4) for rank in range(4)]
    assert sorted(name for share in shares for name in share) == sorted(sizes)
    loads = [sum(sizes[name] for name in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes.values())


def test_the_order_of_tensors_does_not_matter() -> None:
    sizes = {f"layer{i}": i % 3 for i in range(9)}
    turned = dict(reversed(sizes.items()))
    assert checkpoint.share(sizes, 1, 3) == checkpoint.share(turned, 1, 3)




def test_what_is_staged_are_copies_in_memory_that_is_kept() -> None:
    live = {"w": torch.arange(12.0).reshape(3, 4), "empty": torch.empty(0, 3), "flags": torch.tensor([True, False])}
    live |= {"turned": torch.arange(6).reshape(2, 3).t(), "other half": torch.tensor([1 + 2j, 3 - 1j]).conj()}
    staging = Staging()
    for value in (1.0, 2.0):
        live["w"].fill_(value)
        expected = {name: bytes(elements.tensor_bytes(tensor).tolist()) for name, tensor in live.items()}
        staged = staging.copy(live)
        places = [ctypes.addressof(buffer) for *_, buffer in staged]
        live["w"].zero_()
        assert {name: bytes(buffer) for name, _, _, buffer in staged} == expected
        assert value == 1.0 or places == before
        before = places
    assert [(dtype, shape) for _, dtype, shape, _ in staged[:2]] == [("F32", [3, 4]), ("F32", [0, 3])]


def test_other_tensors_are_staged_in_their_own_layout() -> None:
    staging = Staging()
    for live in ({"a": torch.ones(3)}, {"a": torch.ones(2), "b": torch.ones(100_000)}, {"b": torch.zeros(1)}, {}):
        staged = {name: bytes(buffer) for name, _, _, buffer in staging.copy(live)}
        assert staged == {name: bytes(elements.tensor_bytes(tensor).tolist()) for name, tensor in live.items()}


def test_what_is_staged_lies_as_in_its_file() -> None:
    live = {"b": torch.ones(3).bfloat16(), "c": torch.ones(2), "a": torch.ones(5), "d": torch.ones(1).double()}
    staged = {name: ctypes.addressof(buffer) for name, _, _, buffer in Staging().copy(live)}
    assert {name: at - staged["d"] for name, at in staged.items()} == {"d": 0, "a": 8, "c": 28, "b": 36}
