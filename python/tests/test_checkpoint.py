"""Who saves what."""

from __future__ import annotations


from holdfast import checkpoint


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


