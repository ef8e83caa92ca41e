"""Distribution of two models without tuning: the blog's first table, measured.

    python -m experiments.scale_out [--quick] [--seeds N] [--repeat 100] [--data-dir DIR] [--out DIR]

The network of `experiments.mnist` is trained on one worker and on four: through an asynchronous parameter server, where
the batch is multiplied by the workers and nothing else changes, as in the blog; over AllReduce; through a synchronous
server; and with bounded staleness. XGBoost is trained on one worker and on three, over its own AllReduce and through
`xgboost_ray`. All of them have the blog's static hyperparameters. Each training is a step that is kept in `--out`.

Workers that outnumber the cores take turns, so that a wall clock says little of what distribution gives. So one worker
is trained on its share of the rows, too, in this process: the processor seconds that each of several has to work, all
at once where each has a core.

The blog has XGBoost fall from 0.78 on one instance to 0.63 on three. To see what could do that, XGBoost is trained on
each worker's rows alone too, its predictions are averaged, and its AUC is averaged over the workers' parts of the rows.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from ray.train import ScalingConfig
from rich.console import Console

from experiments.scaling import shard_models, tables as scale_tables
from experiments.scaling.measured import (
    IMAGE,
    IMAGE_WORKERS,
    XGBOOST,
    XGBOOST_WORKERS,
    Measured,
    Row,
    Training,
    result,
)
from experiments.shared import blog
from experiments.shared.benchmark import table
from experiments.shared.network import Setting, channels
from experiments.shared.problems import trees
from experiments.shared.published import SEED, Address, DataDir, Options, Out, Quick, Repeat, Seed, Seeds, Steps, finish
from hpo.cli import errors_in_words
from hpo.uncertainty import standard_error
from trainers import Channel, DivergedError, Trainer, XGBoostTrainer
from trainers.datasets import Dataset

ROUNDS = 150
EPOCHS, QUICK_EPOCHS = 20, 40
WARM_UP = 20
"""One row in so many warms a process up."""


def image_rows(epochs: int) -> list[Row]:
    """The network's settings, one worker first."""

    def server(**changed: Any) -> Trainer:
        """`Setting` itself says "async"."""
        trainer = Setting(name="image", workers=IMAGE_WORKERS, asynchronous=True).trainer(epochs)
        return trainer.with_hyperparameters(changed)

    alone, reduced = (Setting(name="image", workers=n).trainer(epochs) for n in (1, IMAGE_WORKERS))
    ways = [
        ("1", "–", alone),  # noqa: RUF001  # the sign for what is not there
        ("4-async", "async server", server()),
        ("4-allreduce", "AllReduce", reduced),
        ("4-sync", "sync server", server(mode="sync")),
        ("4-bounded", "server, staleness bound 3", server(mode="bounded", staleness_bound=3)),
    ]
    return [
        Row(name=f"image-{name}", problem=IMAGE, distribution=distribution, trainer=trainer, metric="accuracy")
        for name, distribution, trainer in ways
    ]


def xgboost_rows(rounds: int) -> list[Row]:
    """XGBoost's settings, one worker first."""
    through = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=XGBOOST_WORKERS, resources_per_worker={"CPU": 1}),
        hyperparameters={**blog.STATIC, "num_round": rounds},
        backend="xgboost_ray",
    )
    ways = [
        ("1", "–", trees(1, rounds)),  # noqa: RUF001  # the sign for what is not there
        ("3-allreduce", "AllReduce", trees(XGBOOST_WORKERS, rounds)),
        ("3-xgboost_ray", "xgboost_ray", through),
    ]
    return [
        Row(name=f"xgboost-{name}", problem=XGBOOST, distribution=distribution, trainer=trainer, metric="auc")
        for name, distribution, trainer in ways
    ]


def train(row: Row, dataset: Dataset, seed: int, folder: Path) -> Training:
    """Trains one setting once."""
    began = time.perf_counter()
    try:
        trained = row.trainer.fit(channels(dataset), storage_path=str(folder), seed=seed)
    except DivergedError:
        return Training(diverged=True, seconds=time.perf_counter() - began)
    return Training(
        curves={
            channel: [report.metrics[f"{channel}:{row.metric}"] for report in trained.reports]
            for channel in ("validation", "test")
        },
        seconds=time.perf_counter() - began,
        training_seconds=trained.training_seconds,
        worker_seconds=trained.worker_seconds,
    )


def share(dataset: Dataset, workers: int) -> Dataset:
    """The rows of one of so many workers: as many of each part."""

    def part(rows: Any) -> Any:
        return tuple(array[::workers] for array in rows) if isinstance(rows, tuple) else rows.iloc[::workers]

    return replace(dataset, **{name: part(rows) for name, rows in channels(dataset).items()})


def working(alone: Row, dataset: Dataset, workers: int, options: Options, steps: Steps) -> float:
    """The processor seconds that one worker needs for its share of the rows, in this process and one thread.

    Args:
        alone: how one worker trains.
        dataset: all rows.
        workers: among whom they are shared.
        options: of the run.
        steps: keep what is done.
    """
    trainer = type(alone.trainer)(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
        hyperparameters=dict(alone.trainer.hyperparameters),
        **alone.trainer.arguments,
    )

    def seconds(workers: int) -> float:
        began = time.process_time()
        folder = str(options.out.absolute() / "models")
        trainer.fit(channels(share(dataset, workers)), storage_path=folder, seed=options.seed)
        return time.process_time() - began

    def work() -> float:
        seconds(WARM_UP * workers)  # The first training of a process imports libraries.
        return seconds(workers)

    settings = {"trainer": trainer.to_json(), "data": dataset.name, "repeat": options.repeat, "seed": options.seed}
    found: float = steps.do(f"{alone.problem}-work-of-{workers}", settings, work)
    return found


def measure(row: Row, dataset: Dataset, options: Options, steps: Steps) -> Measured:
    """Trains one setting with every seed, or finds that it was done."""
    trainings = []
    for seed in options.each_seed:
        settings = {"trainer": row.trainer.to_json(), "data": dataset.name, "repeat": options.repeat, "seed": seed}

        def work(seed: int = seed) -> dict[str, Any]:
            return asdict(train(row, dataset, seed, options.out.absolute() / "models"))

        trainings.append(Training(**steps.do(f"{row.name}-{seed}", settings, work)))
    return Measured(row=row, trainings=trainings, errors=_errors(row, dataset, options.repeat, trainings))


def _errors(row: Row, dataset: Dataset, repeat: int, trainings: Sequence[Training]) -> dict[str, float | None]:
    """By channel, the standard error of one score; that a row appears again makes none surer."""
    errors: dict[str, float | None] = {}
    for channel, times in (("validation", repeat), ("test", 1)):
        values = [training.curves[channel][-1] for training in trainings if training.curves]
        labels = Channel.of(getattr(dataset, channel)).read_whole().labels
        error = standard_error(row.metric, sum(values) / len(values), labels) if values else None
        errors[channel] = None if error is None else error * math.sqrt(times)
    return errors


# ---- what came out


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, by name, from result.json."""
    return scale_tables.tables(result)


def main(
    quick: Quick = False,
    data_dir: DataDir = None,
    seed: Seed = SEED,
    seeds: Seeds = 1,
    repeat: Repeat = 1,
    out: Out = Path("results/scale_out"),
    address: Address = None,
) -> None:
    """Measure what distribution does to two models that nobody tuned for it."""
    # Imported here: drawing libraries take a while to come.
    from experiments.scaling.page import page

    logging.getLogger("ray.train").setLevel(logging.WARNING)  # It says for each training that it runs in this process.
    console = Console(highlight=False)
    options = Options(quick=quick, data_dir=data_dir, seed=seed, seeds=seeds, repeat=repeat, out=out, address=address)
    data = {IMAGE: options.images(), XGBOOST: options.bank_marketing()}
    rows = [*image_rows(QUICK_EPOCHS if quick else EPOCHS), *xgboost_rows(ROUNDS)]
    with Steps(out, console.print) as steps:
        once = replace(options, repeat=1).bank_marketing()
        kept = steps.do(
            f"shard-models-{seed}",
            {"data": once.name, "workers": XGBOOST_WORKERS, "rounds": ROUNDS, "seed": seed},
            lambda: asdict(shard_models.measure(once, XGBOOST_WORKERS, ROUNDS, seed, out.absolute() / "models")),
        )
        measured: dict[str, Measured] = {}
        with options.cluster(IMAGE_WORKERS, steps, console.print):
            for row in rows:
                came = measure(row, data[row.problem], options, steps)
                alone = measured.get(f"{row.problem}-1", came).row
                work = working(alone, data[row.problem], row.trainer.workers, options, steps)
                measured[row.name] = replace(came, work=work)
                test = came.last("test")
                console.print(f"{row.problem}, {row.label}: {test.text if test else 'diverged'} (test)")
    apart = shard_models.WithoutSharing(**kept)
    whole = result(measured, data[XGBOOST], apart)
    console.print(table("Accuracies of the image model, AUCs of XGBoost", *scale_tables.short(whole)))
    console.print(f"\n[bold]{whole['verdict']}[/]\n\n{scale_tables.speed_up(whole['rows'], os.cpu_count() or 1)}")
    finish(options, whole, page(measured, data, apart), console)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
