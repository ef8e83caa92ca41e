"""Memory per worker of a model in replicas and in shards, on two and four workers.

    python -m experiments.layout_memory [--out DIR] [--quick]

A transformer of about 100 million parameters trains a few steps with Adam under each layout, on a gang of its own, with
the same rows per worker. What a worker's process holds is what the kernel counts for it (resident memory), less what it
held before the model was made: between steps, and at most during the last one. It is rank 0's, whose pieces are the
largest. The C library would keep what is freed for later, and hide the difference: it is told to give pieces of a
megabyte and more back at once, and the rest before each look.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import ray
import torch
import typer
from rich.console import Console

from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.checkpoint_ways import Network
from hpo.cli import errors_in_words
from trainers import ScalingConfig, TorchTrainer, TrainContext

LARGE = Network(width=768, layers=12, vocabulary=16_384)
SMALL = Network(width=64, layers=2, vocabulary=512)
CASES = ((2, "replicate=2"), (2, "shard=2"), (4, "replicate=4"), (4, "shard=4"), (4, "replicate=2 shard=2"))
COLUMNS = ("workers", "layout", "held by a worker", "of the replicas'", "at most, while it trains")
ROWS, LENGTH, STEPS = 2, 32, 3
MMAP_THRESHOLD = -3
"""The C library's name for the size of pieces from which on each has a mapping of its own (`mallopt`(3))."""
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a worker holds of a model, in bytes.

    Args:
        workers: of the gang.
        layout: in words.
        steady: after some steps.
        most: while it trains.
    """

    workers: int
    layout: str
    steady: float
    most: float


def train(context: TrainContext) -> None:
    """Trains a few steps, and reports what this process holds.

    Hyperparameters: `width`, `layers`, `vocabulary`.
    """
    words = context.hyperparameters
    small = context.prepare_model(SMALL.made())
    small(torch.zeros((1, 1), dtype=torch.int64)).sum().backward()  # What a first model imports is none of its own.
    ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, 1 << 20)
    before = held()
    network = Network(**{name: words[name] for name in ("width", "layers", "vocabulary")})
    model = context.prepare_model(network.made())
    optimizer = torch.optim.Adam(model.parameters())
    tokens = torch.randint(words["vocabulary"], (ROWS, LENGTH))
    for _ in context.epochs():
        for _ in range(STEPS):
            steady = held()
            _RESET.write_text("5")  # The most from here on.
            context.step(model(tokens).square().mean(), optimizer)
        metrics = {"train:steady": steady - before, "train:most": _most() - before}
        context.report(metrics, checkpoint={"none": 0})


def held() -> int:
    """Bytes that this process holds, without what the C library has left over."""
    ctypes.CDLL(None).malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def _most() -> int:
    """The most bytes that this process has held since it was reset."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measured(network: Network, cases: Sequence[tuple[int, str]]) -> list[Held]:
    """Each case on a gang of its own."""
    found = []
    # A gang has a channel; the function has rows of its own.
    rows = np.zeros((16, 1), np.float32), np.zeros(16, np.float32)
    for workers, layout in cases:
        trainer = TorchTrainer(
            train,
            scaling=ScalingConfig(num_workers=workers),
            layout=layout,
            hyperparameters={**asdict(network), "epochs": 1},
            metrics=["train:steady", "train:most"],
        )
        metrics = trainer.fit({"train": rows}).metrics
        found.append(Held(workers=workers, layout=layout, steady=metrics["train:steady"], most=metrics["train:most"]))
    return found


def targets(found: Sequence[Held]) -> list[Target]:
    """Shards hold their part of what replicas hold, and a tenth more for what is gathered."""
    steady = {(each.workers, each.layout): each.steady for each in found}
    return [
        Target(
            promise=f"a worker of {workers} in shards holds, of what one in replicas holds",
            limit=1 / workers + 0.1,
            measured=steady[workers, f"shard={workers}"] / steady[workers, f"replicate={workers}"],
            unit="x",
        )
        for workers in (2, 4)
    ]


def lines(found: Sequence[Held]) -> list[tuple[str, ...]]:
    """A line for each case."""
    replicas = {each.workers: each.steady for each in found if each.layout == f"replicate={each.workers}"}
    return [
        (
            str(each.workers),
            each.layout,
            f"{each.steady / 1e9:.2f} GB",
            f"{each.steady / replicas[each.workers]:.2f}",
            f"{each.most / 1e9:.2f} GB",
        )
        for each in found
    ]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    found = [Held(**each) for each in result["held"]]
    return {
        "held": markdown(COLUMNS, lines(found)),
        "promises": promised(result["targets"]),
        "parameters": f"{result['parameters'] / 1e6:.0f} million",
    }


def main(
    quick: Annotated[bool, typer.Option("--quick", help="A small network: whether it runs.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/layout_memory"),
) -> None:
    """Measure what a worker holds of a model in replicas and in shards."""
    console = Console(highlight=False)
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray.init(address="local", num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    network = SMALL if quick else LARGE
    found = measured(network, CASES)
    parameters = sum(parameter.numel() for parameter in network.made().parameters())
    kept = targets(found)
    console.print(table(f"{parameters:,} parameters with Adam", COLUMNS, lines(found)), "", promises(kept))
    result = {
        "parameters": parameters,
        "held": [asdict(each) for each in found],
        "targets": targets_to_json(kept),
    }
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
