"""Ray Data into PyTorch: rows a second on gangs, beside `iter_torch_batches` under Ray Train.

    python -m experiments.streaming [--passes 40] [--out DIR] [--quick]

Rows of 32 columns, which a function of Ray Data makes, are read by two workers in shuffled batches, in each pass anew:
here as `Examples.ray_data`, in an order of seed and pass alone; and by `get_dataset_shard().iter_torch_batches` of Ray
Train's own `TorchTrainer`, with a buffer as large, and Ray's own `prefetch_batches`, than which 2 are no faster. Both
train a small network with AllReduce in each step, one thread a worker. Both are there all the time and take turns pass
by pass, for a pass takes three seconds and the machine's speed changes from one to the next. The first pass of each is
not counted, and the promise is on the median of the ratios within a turn.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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

WORKERS, COLUMNS, BATCH, BUFFER = 2, 32, 1000, 5000
TURNSTILE, WAIT_SECONDS = "turnstile", 300.0
HERE, THERE = "here, `Examples.ray_data`", "Ray Train, `iter_torch_batches`"
HEAD = ("", "rows a second")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large it is: rows of a pass, blocks of the dataset, and passes of each way that count."""

    rows: int = 400_000
    blocks: int = 16
    passes: int = 40


QUICK = Scale(rows=20_000, blocks=4, passes=2)


class Turnstile:
    """An actor that lets the workers of one way through at a time."""

    def __init__(self) -> None:
        self._ended = 0
        self._changed = asyncio.Condition()

    async def begin(self, turn: int) -> None:
        """Waits until all workers have ended all turns before this one."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended >= turn * WORKERS)

    async def end(self) -> None:
        """A worker has ended its turn."""
        async with self._changed:
            self._ended += 1
            self._changed.notify_all()


def turn(number: int, *, here: bool) -> int:
    """The turn of a pass; who is first takes turns, too."""
    return 2 * number + (number % 2 if here else 1 - number % 2)


@contextmanager
def own_turn(number: int, *, here: bool) -> Iterator[None]:
    """A worker's turn of a pass, in which no worker of the other way trains."""
    turnstile: Any = ray.get_actor(TURNSTILE, namespace=TURNSTILE)
    ray.get(turnstile.begin.remote(turn(number, here=here)), timeout=WAIT_SECONDS)
    yield
    ray.get(turnstile.end.remote(), timeout=WAIT_SECONDS)


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
    for number in context.epochs():
        with own_turn(number, here=True):
            began, rows = time.perf_counter(), 0
            for batch in batches:
                rows += len(batch["y"])
                context.step(_loss(model, batch), optimizer)
            rate = rows * WORKERS / (time.perf_counter() - began)
        context.report({"train:rate": rate}, checkpoint={})


def theirs(config: dict[str, Any]) -> None:
    """What each worker of Ray Train runs."""
    torch.set_num_threads(1)
    shard, model = ray.train.get_dataset_shard("train"), prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    rates = []
    for number in range(config["passes"]):
        with own_turn(number, here=False):
            began, rows = time.perf_counter(), 0
            batches = shard.iter_torch_batches(
                batch_size=BATCH, local_shuffle_buffer_size=BUFFER, local_shuffle_seed=number
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


def rates_here(data: Any, passes: int, scratch: str) -> list[float]:
    """Rows a second of each pass on a gang."""
    trainer = TorchTrainer(
        ours,
        scaling=ScalingConfig(num_workers=WORKERS),
        hyperparameters={"per_worker_batch_size": BATCH, "epochs": passes},
    )
    result = trainer.fit({"train": Examples.ray_data(data, buffer=BUFFER)}, storage_path=scratch)
    return [report.metrics["train:rate"] for report in result.reports]


def rates_there(data: Any, passes: int, scratch: str) -> list[float]:
    """Rows a second of each pass under Ray Train."""
    trainer = RayTorchTrainer(
        theirs,
        train_loop_config={"passes": passes},
        scaling_config=ScalingConfig(num_workers=WORKERS),
        run_config=RunConfig(name="streaming", storage_path=scratch),
        datasets={"train": data},
    )
    result = trainer.fit()
    assert result.metrics is not None, "the loop reports once, with a checkpoint"
    return list(map(float, result.metrics["rates"]))


def measured(scale: Scale, scratch: str) -> dict[str, list[float]]:
    """Rows a second by turns, the first pass of each left out."""
    # Ray Train's tasks and ours have other environments: else each pass starts all processes of Ray Data anew.
    os.environ["RAY_num_workers_soft_limit"] = "40"  # noqa: SIM112 -- Ray spells it so
    start_ray(4)
    try:
        data, passes = dataset(scale), scale.passes + 1
        actor: Any = ray.remote(num_cpus=0)
        turnstile = actor(Turnstile).options(name=TURNSTILE, namespace=TURNSTILE).remote()
        with ThreadPoolExecutor(1) as pool:
            here = pool.submit(rates_here, data, passes, scratch)
            there = rates_there(data, passes, scratch)
            rates = {HERE: here.result(WAIT_SECONDS)[1:], THERE: there[1:]}
        ray.kill(turnstile)
        return rates
    finally:
        ray.shutdown()


def targets(rates: Mapping[str, list[float]]) -> list[Target]:
    """The promise, and what was measured of it."""
    ratios = [one / other for one, other in zip(rates[HERE], rates[THERE], strict=True)]
    promise = "rows a second, by those of `iter_torch_batches` under Ray Train"
    note = f"{min(ratios):.2f} to {max(ratios):.2f}, mean {statistics.mean(ratios):.3f}"
    return [Target(promise=promise, limit=0.98, measured=statistics.median(ratios), unit="x", at_least=True, note=note)]


def rows(rates: Mapping[str, list[float]]) -> list[tuple[str, ...]]:
    """A line for each way: the median, and the least to the most."""
    return [(way, f"{statistics.median(own):,.0f} ({min(own):,.0f} to {max(own):,.0f})") for way, own in rates.items()]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    return {"rates": markdown(HEAD, rows(result["rates"])), "promises": promised(result["targets"])}


def main(
    passes: Annotated[int, typer.Option(min=1, help="Passes of each way that count.")] = Scale.passes,
    quick: Annotated[bool, typer.Option("--quick", help="Few rows and two passes: whether it runs.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/streaming"),
) -> None:
    """Measure rows a second of Ray Data into PyTorch, here and under Ray Train."""
    console = Console(highlight=False)
    scale = QUICK if quick else Scale(passes=passes)
    with tempfile.TemporaryDirectory(prefix="warmband-streaming-") as scratch:
        rates = measured(scale, scratch)
    kept = targets(rates)
    title = f"{scale.rows:,} rows of {COLUMNS} columns, {WORKERS} workers, {scale.passes} passes"
    console.print(table(title, HEAD, rows(rates)), "", promises(kept))
    result = {"rows": scale.rows, "workers": WORKERS, "rates": rates, "targets": targets_to_json(kept)}
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
