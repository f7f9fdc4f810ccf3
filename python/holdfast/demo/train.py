"""The training script of the demo: an ordinary DDP loop with Holdfast's five lines in it (each marked)."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset

import holdfast
from holdfast.demo.corpus import Windows, load_corpus
from holdfast.demo.model import Decoder, DecoderConfig
from holdfast.demo.steplog import StepLog

EPOCHS = 2


def make_loader(
    text: bytes, steps: int, batch: int, rank: int, world_size: int, seed: int
) -> DataLoader[Tensor]:
    """Batches for `steps` steps in EPOCHS epochs: windows spread evenly over the text, shuffled anew each epoch."""
    windows = Windows(text, DecoderConfig().context)
    wanted = steps // EPOCHS * batch * world_size
    spread = Subset(windows, [index * len(windows) // wanted % len(windows) for index in range(wanted)])
    sampler: DistributedSampler[Tensor] = DistributedSampler(spread, world_size, rank, shuffle=True, seed=seed)
    return DataLoader(spread, batch_size=batch, sampler=sampler)


def learning_rate(step: int, steps: int, warm_up: int = 10) -> float:
    """Factor of the peak rate: a linear rise, then half a cosine down to a tenth."""
    if step < warm_up:
        return (step + 1) / warm_up
    done = (step - warm_up) / max(1, steps - warm_up)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done)))


def weights_hash(model: nn.Module) -> str:
    """SHA-256 over every tensor's name and bytes, in name order."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + b"\0")
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def train(options: argparse.Namespace) -> None:
    """Trains to the last step, logs each, and leaves the weights' hash in the folder."""
    run = holdfast.attach()  # Holdfast 1: also makes the process group
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(options.seed)
    model = Decoder(DecoderConfig(layers=options.layers, width=options.width))
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=options.rate, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(step, options.steps))
    loader = make_loader(load_corpus(options.corpus), options.steps, options.batch, rank, world_size, options.seed)
    run.track(model=parallel, optimizer=optimizer, scheduler=scheduler)  # Holdfast 2
    log = StepLog(options.out, rank)
    for step, batch in run.steps(loader, epochs=EPOCHS):  # Holdfast 3
        with step:  # Holdfast 4
            logits = parallel(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            scheduler.step()
            log.ended(int(step), loss.item())
            if rank == 0 and int(step) % 20 == 0:
                print(f"step {int(step)} loss {loss.item():.3f}", flush=True)
    log.close()
    final = {"rank": rank, "weights": weights_hash(model)}
    Path(options.out, f"final-{rank}.json").write_text(json.dumps(final))


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=240, help=f"a multiple of {EPOCHS}")
    parser.add_argument("--batch", type=int, default=4, help="windows a rank and step")
    parser.add_argument("--layers", type=int, default=DecoderConfig.layers)
    parser.add_argument("--width", type=int, default=DecoderConfig.width)
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=1, help="of the weights, the data's order and the dropout")
    parser.add_argument("--corpus", default="", help="a text to train on instead of Shakespeare")
    parser.add_argument("--out", required=True, help="folder for step logs and the final hash")
    return parser.parse_args(argv)


if __name__ == "__main__":
    train(parse())
