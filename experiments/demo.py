"""The demo: four workers break a network, tuning for four workers repairs it, and a gang of workers stays warm.

    python -m experiments.demo [--out DIR]

The network trains on scikit-learn's digits. First it trains on one worker, with settings that suit one worker. Then a
search on four workers begins with the same settings: the workers send their gradients to an asynchronous parameter
server, and the network learns nothing. The search tunes the learning rate and the server's mode, and trains each
configuration three times with new seeds. At the end, Hyperband tunes distributed XGBoost, to show what the first trial
waits for its workers and what the later ones wait.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console

from experiments.shared.network import METRICS, TRAIN, channels
from experiments.shared.pictures import Line, learning
from experiments.shared.published import titled
from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.cli import errors_in_words
from hpo.ranges import ParameterRange
from hpo.ranking import mean_error
from hpo.record import Store
from hpo.report import Figure, JobData, Measured, Page, Section, Table, Text, job_sections, look
from hpo.text import short
from trainers import ParameterServerTrainer, TorchTrainer, Trainer, XGBoostTrainer
from trainers.cluster import cluster
from trainers.datasets import load

WORKERS, EPOCHS, CONFIGURATIONS, REPEATS, SEED = 4, 9, 8, 3, 1729
OUT = Path("results/demo")
ACCURACY, AUC = "validation:accuracy", "validation:auc"
UNCHANGED = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 20, "epochs": EPOCHS}
NETWORK_RANGES: dict[str, ParameterRange] = {
    "lr": ContinuousParameter(0.003, 0.3, "Logarithmic"),
    "mode": CategoricalParameter(["async", "bounded", "sync"]),
}
XGBOOST_WORKERS, XGBOOST_TRIALS, ROUNDS = 2, 12, 27
XGBOOST_RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.01, 1, "Logarithmic"),
    "max_depth": IntegerParameter(1, 10),
}


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Repeated runs of the network with one setting, each with its own seed.

    Args:
        name: of the setting, as the page calls it.
        curves: for each run, the accuracy on the validation rows after each epoch, from 0 to 1.
    """

    name: str
    curves: Sequence[Sequence[float]]

    @property
    def mean(self) -> float:
        """Return the mean of the runs' last accuracies."""
        return statistics.fmean(curve[-1] for curve in self.curves)

    @property
    def error(self) -> float:
        """Return the standard error of the mean, from the spread of the runs."""
        error = mean_error([curve[-1] for curve in self.curves])
        return math.nan if error is None else error

    @property
    def text(self) -> str:
        """Return mean and standard error as text."""
        return f"{self.mean:.3f} ± {self.error:.3f}"


def errors_apart(better: Runs, worse: Runs) -> float:
    """Return by how many of its standard errors the difference of two means differs from 0."""
    error = math.hypot(better.error, worse.error)
    return (better.mean - worse.mean) / error if error else math.inf


@dataclass(frozen=True, kw_only=True)
class Starts:
    """Seconds in which the workers of a job's gang waited or started, and did not train.

    Args:
        first: the start of the gang: processes, libraries, data and process group.
        later: between two assignments of trials to the running gang, in the mean.
    """

    first: float
    later: float

    @classmethod
    def of(cls, data: JobData) -> Starts:
        """Read the seconds from the ledger of XGBoost's job, which used one gang."""
        assignments = sum(row.kind == "training" for row in data.ledger)
        first, later = (data.billed[kind] / XGBOOST_WORKERS for kind in ("starting", "idle"))
        return cls(first=first, later=later / assignments)


class Demo:
    """The steps of the demo, in the folder that keeps its record, its log and its page.

    Args:
        folder: is made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._store = f"sqlite:///{self._folder}/warmband.db"
        self._digits = channels(load("digits"))
        self._bank = channels(load("bank-marketing-synthetic"))
        self._began = time.strftime("%Y%m%d-%H%M%S")

    def one_worker(self) -> Runs:
        """Train the network on one worker, in this process."""
        trainer = TorchTrainer(TRAIN, scaling=ScalingConfig(num_workers=0), hyperparameters=UNCHANGED, metrics=METRICS)
        runs = [trainer.fit(self._digits, seed=SEED + run) for run in range(REPEATS)]
        curves = [[report.metrics[ACCURACY] for report in run.reports] for run in runs]
        return Runs(name="one worker", curves=curves)

    def four_workers(self) -> JobData:
        """Tune the network on four workers; the first configuration has the settings of one worker."""
        trainer = ParameterServerTrainer(
            TRAIN,
            scaling=ScalingConfig(num_workers=WORKERS),
            hyperparameters={**UNCHANGED, "mode": "async"},
            metrics=METRICS,
        )
        search: dict[str, Any] = {
            "strategy": "Bayesian",
            "max_jobs": CONFIGURATIONS * REPEATS,
            "repeats": REPEATS,
            "points_to_evaluate": [{"lr": UNCHANGED["lr"], "mode": "async"}],
        }
        return self._tune("network", trainer, ACCURACY, NETWORK_RANGES, self._digits, **search)

    def trees(self) -> JobData:
        """Tune distributed XGBoost by Hyperband."""
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=XGBOOST_WORKERS),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3},
        )
        hyperband: dict[str, Any] = {
            "strategy": "Hyperband",
            "strategy_config": StrategyConfig(HyperbandStrategyConfig(max_resource=ROUNDS, min_resource=1)),
            "max_jobs": XGBOOST_TRIALS,
        }
        return self._tune("xgboost", trainer, AUC, XGBOOST_RANGES, self._bank, **hyperband)

    def _tune(
        self,
        name: str,
        trainer: Trainer,
        objective: str,
        ranges: Mapping[str, ParameterRange],
        inputs: Mapping[str, Any],
        **options: Any,
    ) -> JobData:
        job = f"{name}-{self._began}"
        with (self._folder / "log.txt").open("a") as log:
            tuner = HyperparameterTuner(
                trainer,
                objective,
                dict(ranges),
                random_seed=SEED,
                storage_path=str(self._folder / "jobs"),
                store=self._store,
                console=Console(file=log, width=120),
                **options,
            )
            tuner.fit(dict(inputs), job_name=job)
        with Store(self._store) as store:
            return JobData.read(store, job)


def on_four(data: JobData) -> tuple[Runs, Runs]:
    """Return the runs with nothing changed and those of the best configuration, of the job on four workers."""
    curves = [[row.metrics[ACCURACY] for row in data.reports[trial.trial_id]] for trial in data.trials]
    best = data.best.number // REPEATS * REPEATS if data.best else 0
    unchanged = Runs(name="four workers, nothing changed", curves=curves[:REPEATS])
    return unchanged, Runs(name="four workers, tuned", curves=curves[best : best + REPEATS])


def picture(settings: Sequence[Runs]) -> Figure:
    """Draw the accuracy by epoch, one colour for each setting."""
    title = f"{settings[1].name}: {settings[1].text}; tuned: {settings[2].text}; one worker: {settings[0].text}"
    note = (
        f"Means of {REPEATS} runs of each setting, each with its own seed, in a band from worst to best; ± is the "
        f"standard error. The tuned setting is the best of {CONFIGURATIONS} by these runs, which flatters it a little."
    )
    shown = [
        Line(label=f"{runs.name}: {runs.text}", curves=runs.curves, colour=colour)
        for runs, colour in zip(settings, (look.GREY, look.BLUE, look.BEST), strict=True)
    ]
    return learning("accuracy", title, note, shown, "epoch", ACCURACY)


def lines(settings: Sequence[Runs], search: JobData, trees: JobData) -> list[str]:
    """Return the three lines that the demo ends with."""
    alone, unchanged, tuned = settings
    starts, summary = Starts.of(trees), search.job.summary
    billed, forecast = sum(summary["worker_seconds"].values()), summary["forecast"]["expected"]["worker_seconds"]
    return [
        f"Network: accuracy {alone.text} on one worker, {unchanged.text} on {WORKERS} with nothing changed, "
        f"{tuned.text} tuned for {WORKERS}. The last two are {errors_apart(tuned, unchanged):.0f} standard errors "
        "apart.",
        f"XGBoost: {XGBOOST_TRIALS} trials on one gang of {XGBOOST_WORKERS} workers. The first waited "
        f"{starts.first:.1f} s for the workers to start; the later ones waited {starts.later:.3f} s.",
        f"Bill of the network's search: {billed:.0f} worker-seconds; the forecast said {forecast:.0f}.",
    ]


def page(settings: Sequence[Runs], search: JobData, trees: JobData) -> Page:
    """Return the demo's page: the picture first, then the network's search and XGBoost's."""
    told = lines(settings, search, trees)
    rows = [(runs.name, Measured(runs.mean, runs.error)) for runs in settings]
    best = search.best
    found = ", ".join(f"{name}={short(best.hyperparameters[name])}" for name in NETWORK_RANGES) if best else "nothing"
    sections = [
        Section(
            "What four workers break, and tuning repairs",
            [
                picture(settings),
                Table(("setting", ACCURACY), rows, caption=f"After {EPOCHS} epochs; means of {REPEATS} runs."),
                Text(
                    f"With nothing changed, {WORKERS} workers send gradients to a parameter server that waits for none "
                    f"of them (mode=async, lr={UNCHANGED['lr']}). The search found {found}."
                ),
            ],
        ),
        Section("A warm gang, and the bill", [Text(told[1]), Text(told[2])]),
    ]
    for title, data in (("The network's search", search), ("XGBoost's search", trees)):
        sections += titled(job_sections(data), title)
    return Page("Warmband's demo", told[0], sections)


def main(out: Annotated[Path, typer.Option(help="Folder for the page, the log and the record.")] = OUT) -> None:
    """Break a network by distributing it, repair it by tuning, and show a warm gang's starts and bill."""
    console = Console(highlight=False, soft_wrap=True)
    began = time.monotonic()

    def step(number: int, text: str) -> None:
        console.print(f"{time.monotonic() - began:5.0f} s  {number}/3  {text}")

    demo = Demo(out)
    step(1, f"A network on one worker, {REPEATS} runs")
    alone = demo.one_worker()
    with cluster(WORKERS, lambda _: None):
        step(2, f"One worker: accuracy {alone.text}. Now {WORKERS} workers, which start first: as it is, and tuned")
        search = demo.four_workers()
        settings = (alone, *on_four(search))
        step(
            3, f"{WORKERS} workers: {settings[1].text}, tuned {settings[2].text}. Now XGBoost, {XGBOOST_TRIALS} trials"
        )
        trees = demo.trees()
    path = page(settings, search, trees).write(out / "index.html")
    console.print("", *lines(settings, search, trees), f"The page: {path.absolute().as_uri()}", sep="\n")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
