"""Models of the package transformers: it opens what we write, and we what it writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here is fetched

from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

import holdfast  # noqa: E402


def tiny(tied: bool) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=100,
        tie_word_embeddings=tied,
    )
    return LlamaForCausalLM(config)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("size", ["20KB", "5GB"])
def test_we_load_what_save_pretrained_writes(tmp_path: Path, tied: bool, size: str) -> None:
    model = tiny(tied)
    model.save_pretrained(tmp_path, max_shard_size=size)
    assert (tmp_path / "model.safetensors.index.json").exists() == (size == "20KB")
    loaded = holdfast.load(tmp_path)
    state = model.state_dict()
    assert set(state) - set(loaded) == ({"lm_head.weight"} if tied else set())
    assert all(torch.equal(state[name], tensor) for name, tensor in loaded.items())
    assert dict(holdfast.weights(tmp_path)).keys() == loaded.keys()
    assert holdfast.verify(tmp_path) is False


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("size", ["20KB", "5GB"])
def test_from_pretrained_opens_what_we_write(tmp_path: Path, tied: bool, size: str) -> None:
    model = tiny(tied)
    model.config.save_pretrained(tmp_path)
    holdfast.save(model.state_dict(), tmp_path, max_shard_bytes=size)
    opened, told = LlamaForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not told["missing_keys"] and not told["unexpected_keys"] and not told["mismatched_keys"]
    state = model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in opened.state_dict().items())


def test_from_pretrained_opens_what_was_saved_over_its_own(tmp_path: Path) -> None:
    tiny(False).save_pretrained(tmp_path, max_shard_size="20KB")
    changed = {name: tensor + 1 for name, tensor in tiny(False).state_dict().items()}
    for size in ("20KB", "5GB", "20KB"):
        holdfast.save(changed, tmp_path, max_shard_bytes=size)
        opened = LlamaForCausalLM.from_pretrained(tmp_path).state_dict()
        assert all(torch.equal(changed[name], tensor) for name, tensor in opened.items())
