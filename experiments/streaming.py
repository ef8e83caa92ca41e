"""Ray Data into PyTorch: rows a second on gangs, beside `iter_torch_batches` under Ray Train.

    python -m experiments.streaming [--turns 5] [--out DIR] [--quick]

Rows of 32 columns, which a function of Ray Data makes, are read by two workers in shuffled batches, in each pass anew:
here as `Examples.ray_data`, in an order of seed and pass alone; and by `get_dataset_shard().iter_torch_batches` of Ray
Train's own `TorchTrainer`, with a buffer as large. Both train a small network with AllReduce in each step, one thread
a worker. The two take turns, the first pass of each is not counted, and the promise is on the median of the ratios
within a turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import ray
import ray.data
import ray.train
import torch
import typer
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer as RayTorchTrainer, prepare_model
from rich.console import Console
from torch import nn

from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.small_job import start_ray
from hpo.cli import errors_in_words
from trainers import Examples, TorchTrainer

WORKERS, COLUMNS, BATCH, BUFFER, PASSES = 2, 32, 1000, 5000, 3
HERE, THERE = "here, `Examples.ray_data`", "Ray Train, `iter_torch_batches`"
HEAD = ("", "rows a second")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large it is: rows of a pass, blocks of the dataset, and turns."""

    rows: int = 400_000
    blocks: int = 16
    turns: int = 5


QUICK = Scale(rows=20_000, blocks=4, turns=1)


def dataset(scale: Scale) -> Any:
    """The rows, made as they are read."""
    return ray.data.range(scale.rows, override_num_blocks=scale.blocks).map_batches(_made)


def _made(batch: Any) -> Any:
    ids = batch["id"]
    rows = np.sin(ids[:, None] * np.arange(1, COLUMNS + 1)).astype(np.float32)
    return {"x": rows, "y": rows.sum(axis=1)}


def network() -> nn.Module:
    """What both train."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 1))


def _loss(model: nn.Module, batch: Any) -> Any:
    return nn.functional.mse_loss(model(batch["x"])[:, 0], batch["y"])


def ours(context: Any) -> None:
    """The function of a gang."""
    batches = context.prepare_data("train")
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in context.epochs():
        began, rows = time.perf_counter(), 0
        for batch in batches:
            rows += len(batch["y"])
            context.step(_loss(model, batch), optimizer)
        context.report({"train:rate": rows * WORKERS / (time.perf_counter() - began)}, checkpoint={})


def theirs(config: dict[str, Any]) -> None:
    """What each worker of Ray Train runs."""
    torch.set_num_threads(1)
    shard, model = ray.train.get_dataset_shard("train"), prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    rates = []
    for number in range(PASSES):
        began, rows = time.perf_counter(), 0
        batches = shard.iter_torch_batches(
            batch_size=BATCH, local_shuffle_buffer_size=BUFFER, local_shuffle_seed=number, prefetch_batches=2
        )
        for batch in batches:
            rows += len(batch["y"])
            _loss(model, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
        rates.append(rows * WORKERS / (time.perf_counter() - began))
    with tempfile.TemporaryDirectory() as folder:
        first = ray.train.get_context().get_world_rank() == 0
        ray.train.report({"rates": rates}, checkpoint=Checkpoint.from_directory(folder) if first else None)


def rate_here(data: Any, scratch: str) -> float:
    """Rows a second on a gang."""
    trainer = TorchTrainer(
        ours,
        scaling=ScalingConfig(num_workers=WORKERS),
        hyperparameters={"per_worker_batch_size": BATCH, "epochs": PASSES},
    )
    result = trainer.fit({"train": Examples.ray_data(data, buffer=BUFFER)}, storage_path=scratch)
    return statistics.median(report.metrics["train:rate"] for report in result.reports[1:])


def rate_there(data: Any, scratch: str, number: int) -> float:
    """Rows a second under Ray Train."""
    trainer = RayTorchTrainer(
        theirs,
        scaling_config=ScalingConfig(num_workers=WORKERS),
        run_config=RunConfig(name=f"streaming-{number}", storage_path=scratch),
        datasets={"train": data},
    )
    result = trainer.fit()
    assert result.metrics is not None, "the loop reports once, with a checkpoint"
    return float(statistics.median(result.metrics["rates"][1:]))


def measured(scale: Scale, scratch: str) -> dict[str, list[float]]:
    """Rows a second by turns; who is first takes turns, too."""
    start_ray(4)
    try:
        data = dataset(scale)
        rates: dict[str, list[float]] = {HERE: [], THERE: []}
        for turn in range(scale.turns):
            ways = {HERE: partial(rate_here, data, scratch), THERE: partial(rate_there, data, scratch, turn)}
            for way in (HERE, THERE) if turn % 2 == 0 else (THERE, HERE):
                rates[way].append(ways[way]())
        return rates
    finally:
        ray.shutdown()


def targets(rates: Mapping[str, list[float]]) -> list[Target]:
    """The promise, and what was measured of it."""
    ratios = [one / other for one, other in zip(rates[HERE], rates[THERE], strict=True)]
    promise = "rows a second, by those of `iter_torch_batches` under Ray Train"
    return [Target(promise=promise, limit=0.98, measured=statistics.median(ratios), unit="x", at_least=True)]


def rows(rates: Mapping[str, list[float]]) -> list[tuple[str, ...]]:
    """A line for each way: the median, and the least to the most."""
    return [(way, f"{statistics.median(own):,.0f} ({min(own):,.0f} to {max(own):,.0f})") for way, own in rates.items()]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/benchmarks.md."""
    return {"rates": markdown(HEAD, rows(result["rates"])), "promises": promised(result["targets"])}


def main(
    turns: Annotated[int, typer.Option(min=1, help="Turns of each way.")] = Scale.turns,
    quick: Annotated[bool, typer.Option("--quick", help="Few rows and one turn: whether it runs.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/streaming"),
) -> None:
    """Measure rows a second of Ray Data into PyTorch, here and under Ray Train."""
    console = Console(highlight=False)
    scale = QUICK if quick else Scale(turns=turns)
    with tempfile.TemporaryDirectory(prefix="warmband-streaming-") as scratch:
        rates = measured(scale, scratch)
    kept = targets(rates)
    title = f"{scale.rows:,} rows of {COLUMNS} columns, {WORKERS} workers"
    console.print(table(title, HEAD, rows(rates)), "", promises(kept))
    result = {"rows": scale.rows, "workers": WORKERS, "rates": rates, "targets": targets_to_json(kept)}
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
