"""Tuning of networks that people train: a GPT on text and a convolutional network on images, on two or four workers.

    python -m experiments.tune_network gpt|images [--workers 2] [--size small] [--trials 17] [--units 9]
        [--rows-per-unit N] [--data-dir DIR] [--out DIR]

One job of Hyperband, whose model suggests configurations, over learning rate, warm-up, weight decay, batch and layout:
how the workers share the model. The un-tuned run has the learning rate of nanoGPT, or of PyTorch's own example, with
the workers as replicas. A unit of resource is as many rows, whatever the batch, so that a trial of large batches gets
as much data in fewer updates; a trial of all units follows its learning rate's schedule to the end, and one that is
stopped earlier does not.

The GPT learns the source of this machine's Python, byte by byte; text and figures differ between versions of Python.
The page of the job, which `hpo report` makes too, goes into `--out`; what `docs/networks` keeps of it has no pictures.
"""

from __future__ import annotations

import math
import platform
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console, Group

from experiments.networks.gpt import SIZES
from experiments.networks.training import GPT_NAME, IMAGES_NAME, METRICS, TEXT_METRICS
from experiments.shared.benchmark import markdown, table, write
from experiments.shared.network import channels
from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    StrategyConfig,
)
from hpo.cli import errors_in_words
from hpo.ranges import ParameterRange
from hpo.record import Store
from hpo.report import Figure, JobData, Page, job_page
from hpo.text import short
from trainers import ConfigurationError, TorchTrainer, WarmbandError
from trainers.cluster import cluster
from trainers.datasets import Dataset, load

SEED = 1729
LAYOUTS = {
    2: ["replicate=2", "shard=2", "tensor=2"],
    4: ["replicate=4", "replicate=2 shard=2", "shard=4", "shard=2 tensor=2"],
}
"""By workers, those that are tried; the first is that of the un-tuned run."""


class Network(StrEnum):
    """What to tune."""

    GPT = "gpt"
    IMAGES = "images"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A network as it is tuned.

    Args:
        train: the training function's name.
        dataset: that it is trained on.
        metrics: that it reports; trials are compared by "validation:loss".
        shown: that tables show beside.
        static: hyperparameters of the un-tuned run.
        rows_per_unit: if nothing else is said.
        lr: the range of the learning rate.
        batches: that are tried.
    """

    train: str
    dataset: str
    metrics: tuple[str, ...]
    shown: str
    static: Mapping[str, Any]
    rows_per_unit: int
    lr: tuple[float, float]
    batches: tuple[int, ...]

    def ranges(self, workers: int) -> dict[str, ParameterRange]:
        """What is tuned on so many workers."""
        return {
            "lr": ContinuousParameter(*self.lr, "Logarithmic"),
            "warm_up": ContinuousParameter(0.0, 0.5),
            "weight_decay": ContinuousParameter(0.001, 0.5, "Logarithmic"),
            "global_batch_size": CategoricalParameter(list(self.batches)),
            "layout": CategoricalParameter(LAYOUTS[workers]),
        }


PROBLEMS = {
    Network.GPT: Problem(
        train=GPT_NAME,
        dataset="python-stdlib",
        metrics=TEXT_METRICS,
        shown="validation:perplexity",
        static={"lr": 0.0006, "warm_up": 0.1, "weight_decay": 0.1, "global_batch_size": 32, "validation_rows": 128},
        rows_per_unit=512,
        lr=(0.0001, 0.03),
        batches=(8, 16, 32, 64),
    ),
    Network.IMAGES: Problem(
        train=IMAGES_NAME,
        dataset="mnist",
        metrics=METRICS,
        shown="validation:accuracy",
        static={"lr": 0.001, "warm_up": 0.1, "weight_decay": 0.01, "global_batch_size": 64, "validation_rows": 2000},
        rows_per_unit=4000,
        lr=(0.0001, 0.03),
        batches=(32, 64, 128, 256),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One trial.

    Args:
        layout: how its workers shared the model.
        units: of resource that it was trained for.
        value: the last validation loss; None where it diverged or failed.
        status: how it ended.
        unit_seconds: of wall time that a unit took, validation included; None where none was trained.
    """

    layout: str
    units: int
    value: float | None
    status: str
    unit_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What a job came to.

    Args:
        workers: of each trial.
        best: the best trial's hyperparameters.
        metrics: the best trial's.
        untuned: the metrics without tuning; empty where that run diverged or failed.
        units: that all trials trained.
        unit_rows: rows of a unit.
        max_units: of the longest trial.
        worker_seconds: billed for the whole job.
        gangs: that came up.
        seconds: wall seconds of the job.
        trials: all of them.
    """

    workers: int
    best: dict[str, Any]
    metrics: dict[str, float]
    untuned: dict[str, float]
    units: int
    unit_rows: int
    max_units: int
    worker_seconds: float
    gangs: int
    seconds: float
    trials: list[Tried]


def trainer(problem: Problem, workers: int, units: int, rows_per_unit: int, size: str) -> TorchTrainer:
    """The un-tuned run's trainer; 0 workers train in this process."""
    given = {**problem.static, "units": units, "rows_per_unit": rows_per_unit, "size": size, "epochs": units}
    scaling = ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1})
    return TorchTrainer(problem.train, scaling=scaling, hyperparameters=given, metrics=problem.metrics)


def tune(
    job: str,
    problem: Problem,
    dataset: Dataset,
    trainer: TorchTrainer,
    ranges: Mapping[str, ParameterRange],
    *,
    folder: str,
    trials: int,
    console: Console,
) -> tuple[Tuned, Page]:
    """Runs a job, and makes its page.

    Args:
        job: its name.
        problem: what is tuned.
        dataset: its rows.
        trainer: the un-tuned run's.
        ranges: what is tuned.
        folder: for its record and checkpoints.
        trials: in all.
        console: where it is followed.

    Raises:
        WarmbandError: it did not end as it should.
    """
    url, units = f"sqlite:///{folder}/{job}.db", trainer.hyperparameters["units"]
    tuner = HyperparameterTuner(
        trainer,
        "validation:loss",
        ranges,
        objective_type="Minimize",
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=units, min_resource=1)),
        max_jobs=trials,
        random_seed=SEED,
        storage_path=f"{folder}/jobs",
        store=url,
        console=console,
    )
    tuner.fit(channels(dataset), job_name=job)
    with Store(url) as store:
        data = JobData.read(store, job)
    if data.job.status != "Completed" or not data.job.summary["best"]:
        raise WarmbandError(f"job {job} ended as {data.job.status}: {data.job.reason or 'no trial has a score'}")
    return told(data, trainer), job_page(data)


def told(data: JobData, trainer: TorchTrainer) -> Tuned:
    """A job's record in figures."""
    summary, static = data.job.summary, trainer.hyperparameters
    seconds: defaultdict[str, float] = defaultdict(float)
    for row in data.ledger:
        if row.trial_id and row.workers and row.kind == "training":
            seconds[row.trial_id] += row.worker_seconds / row.workers
    trials = [
        Tried(
            layout=trial.hyperparameters.get("layout", ""),
            units=trial.resource,
            value=trial.objective,
            status=trial.status,
            unit_seconds=seconds[trial.trial_id] / trial.resource if trial.resource else None,
        )
        for trial in data.trials
    ]
    return Tuned(
        workers=trainer.workers,
        best=summary["best"]["hyperparameters"],
        metrics=summary["best"]["metrics"],
        untuned=(summary["untuned"] or {}).get("metrics", {}),
        units=summary["resource_used"],
        unit_rows=static["rows_per_unit"],
        max_units=static["units"],
        worker_seconds=sum(summary["worker_seconds"].values()),
        gangs=summary["gangs"],
        seconds=summary["wall_seconds"],
        trials=trials,
    )


# ---- what came out


def result(tuned: Tuned, network: Network, size: str, dataset: Dataset) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "network": network.value,
        "size": {"name": size, **asdict(SIZES[size])} if network is Network.GPT else None,
        "dataset": {"name": dataset.name, "train": len(dataset.train[1]), "python": platform.python_version()},
        "setting": {**PROBLEMS[network].static, "seed": SEED},
        "tuned": asdict(tuned),
    }


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of a document, from what result.json holds.

    Args:
        result: that of `main`.

    Returns:
        As markdown by name: "tuned", "layouts" and, for one line, "short".
    """
    tuned = Tuned(**{**result["tuned"], "trials": [Tried(**trial) for trial in result["tuned"]["trials"]]})
    shown = PROBLEMS[Network(result["network"])].shown
    return {
        "tuned": markdown(_columns(shown), _rows(tuned, shown)),
        "layouts": markdown(LAYOUT_COLUMNS, _layouts(tuned)),
        "short": f"a validation loss of {_figure(tuned.untuned, OBJECTIVE)} became {_figure(tuned.metrics, OBJECTIVE)}",
    }


def show(tuned: Tuned, network: Network, dataset: Dataset) -> Group:
    """The tables that people look at."""
    shown = PROBLEMS[network].shown
    title = f"{dataset.title}, {tuned.workers} workers, {tuned.units} units of {tuned.unit_rows:,} rows"
    return Group(
        table(f"{title} in {tuned.seconds:.0f} s", _columns(shown), _rows(tuned, shown)),
        "",
        table("Layouts", LAYOUT_COLUMNS, _layouts(tuned)),
    )


OBJECTIVE = "validation:loss"
LAYOUT_COLUMNS = ("layout", "trials", "least validation loss", "trained to the end", "seconds of a unit, median")


def _columns(shown: str) -> tuple[str, ...]:
    return ("", OBJECTIVE, shown, "units", "worker-seconds")


def _rows(tuned: Tuned, shown: str) -> list[tuple[str, ...]]:
    best = ", ".join(f"{name} {short(value)}" for name, value in tuned.best.items())
    return [
        ("un-tuned", _figure(tuned.untuned, OBJECTIVE), _figure(tuned.untuned, shown), str(tuned.max_units), ""),
        (
            f"tuned: {best}",
            _figure(tuned.metrics, OBJECTIVE),
            _figure(tuned.metrics, shown),
            f"{tuned.units} of all trials",
            f"{tuned.worker_seconds:.0f} for the whole job",
        ),
    ]


def _layouts(tuned: Tuned) -> list[tuple[str, ...]]:
    """Of each layout, in the order in which they were tried."""
    by_layout: defaultdict[str, list[Tried]] = defaultdict(list)
    for trial in tuned.trials:
        by_layout[trial.layout].append(trial)
    rows: list[tuple[str, ...]] = []
    for layout, tried in by_layout.items():
        values = [trial.value for trial in tried if trial.value is not None]
        seconds = sorted(trial.unit_seconds for trial in tried if trial.unit_seconds is not None)
        rows.append(
            (
                layout,
                str(len(tried)),
                f"{min(values):.3f}" if values else "none",
                str(sum(trial.units == tuned.max_units for trial in tried)),
                f"{seconds[len(seconds) // 2]:.1f}" if seconds else "",
            )
        )
    return rows


def _figure(metrics: Mapping[str, float], name: str) -> str:
    value = metrics.get(name, math.nan)
    return f"{value:.4g}" if math.isfinite(value) else "diverged or failed"


def without_pictures(page: Page) -> Page:
    """A job's page that is small enough to be kept: its verdict and tables; pictures and their library stay out."""
    kept = []
    for section in page.sections:
        blocks = [block for block in section.blocks if not isinstance(block, Figure)]
        kept += [replace(section, blocks=blocks)] if blocks else []
    return replace(page, sections=kept)


def main(
    network: Annotated[Network, typer.Argument(help="What to tune.")],
    workers: Annotated[int, typer.Option(min=2, max=4, help="Of each trial: 2 or 4.")] = 2,
    size: Annotated[str, typer.Option(help=f"Of the GPT: {', '.join(SIZES)}.")] = "small",
    trials: Annotated[int, typer.Option(min=1, help="Of the job.")] = 17,
    units: Annotated[int, typer.Option(min=1, help="Of the longest trial.")] = 9,
    rows_per_unit: Annotated[int | None, typer.Option(min=1, help="Rows to train on in a unit of resource.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds MNIST's files.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json and the pages.")] = Path("results/tune_network"),
) -> None:
    """Tune a network, and the layout of its workers."""
    for name, value, known in (("--workers", workers, LAYOUTS), ("--size", size, SIZES)):
        if value not in known:
            raise ConfigurationError(f"{name} is {value}; give one of {', '.join(map(str, known))}")
    console, problem = Console(highlight=False), PROBLEMS[network]
    data, job = load(problem.dataset, data_dir=data_dir), f"{network.value}-{workers}"
    base = trainer(problem, workers, units, rows_per_unit or problem.rows_per_unit, size)
    with tempfile.TemporaryDirectory(prefix="warmband-network-") as folder, cluster(workers, console.print):
        ranges = problem.ranges(workers)
        tuned, page = tune(job, problem, data, base, ranges, folder=folder, trials=trials, console=console)
    console.print(show(tuned, network, data))
    console.print(f"written to {write(out, result(tuned, network, size, data))}")
    kept = without_pictures(page).write(out / f"{job}.html")
    console.print(f"the page: {page.write(out / 'index.html')}; without pictures: {kept}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
