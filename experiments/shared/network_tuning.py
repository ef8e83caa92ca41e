"""Tuning of the small network for asynchronous workers: `python -m experiments.mnist --tune`.

Two jobs of Hyperband, each from the hyperparameters whose un-tuned training on four asynchronous workers it is compared
with: the first tunes what the network learns by (learning rate, momentum, batch), the workers staying asynchronous and
four; the second tunes the distribution as well: the parameter server's mode, the number of workers, and the
learning-rate rule, which has nothing to scale where an update is one worker's. Trials are chosen by accuracy on the
validation rows, and what is promised is the best one's on the test rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group

from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.shared.network import BLOG, GOOD, LEARNING, SEED, Setting, channels
from hpo import CategoricalParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.ranges import ParameterRange
from hpo.record import Store
from hpo.sagemaker import tuned_trials
from hpo.search import UNTUNED
from hpo.text import short
from trainers.cluster import cluster
from trainers.datasets import Dataset

DISTRIBUTION: dict[str, ParameterRange] = {
    "mode": CategoricalParameter(["async", "bounded", "sync"]),
    "num_workers": CategoricalParameter([2, 4]),
    "learning_rate_rule": CategoricalParameter(["none", "linear", "sqrt"]),
}
JOBS = {"learning": LEARNING, "learning-and-distribution": LEARNING | DISTRIBUTION}


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What one job came to.

    Args:
        job: its name.
        trials: how many of each status.
        epochs: that all trials trained.
        best: the best trial's hyperparameters.
        accuracy: the best trial's on the test rows.
        validation: the same on the validation rows, by which it was chosen.
        untuned: accuracy on the test rows without tuning; None where that training diverged or failed.
        worker_seconds: billed for the whole job.
        untuned_worker_seconds: the part of it for the un-tuned training.
        seconds: wall seconds of the job.
    """

    job: str
    trials: dict[str, int]
    epochs: int
    best: dict[str, Any]
    accuracy: float
    validation: float
    untuned: float | None
    worker_seconds: float
    untuned_worker_seconds: float
    seconds: float


def tune(
    job: str,
    dataset: Dataset,
    folder: str,
    *,
    workers: int,
    trials: int,
    epochs: int,
    in_hand: bool = False,
    console: Console,
) -> Tuned:
    """Runs one of `JOBS`.

    Args:
        job: which.
        dataset: to train, validate and test on.
        folder: for its record and checkpoints.
        workers: of the un-tuned training, and of every trial where they are not tuned.
        trials: in all.
        epochs: of the longest trial, and of the un-tuned training.
        in_hand: in this process, where the workers are simulated.
        console: where it is followed.
    """
    url = f"sqlite:///{folder}/{job}.db"
    tuner = HyperparameterTuner(
        Setting(name=job, workers=workers, asynchronous=True).trainer(epochs, in_hand=in_hand),
        "validation:accuracy",
        JOBS[job],
        strategy="Hyperband",
        strategy_config=StrategyConfig(
            HyperbandStrategyConfig(max_resource=epochs, min_resource=1, suggestions="random")
        ),
        max_jobs=trials,
        random_seed=SEED,
        storage_path=f"{folder}/jobs",
        store=url,
        console=console,
    )
    tuner.fit(channels(dataset), job_name=job)
    with Store(url) as store:
        summary, billed, tried = store.job(job).summary, store.ledger(job), tuned_trials(store, job)
    best = summary["best"]
    return Tuned(
        job=job,
        trials={status: sum(trial.status == status for trial in tried) for status in sorted({t.status for t in tried})},
        epochs=summary["resource_used"],
        best=best["hyperparameters"],
        accuracy=best["metrics"]["test:accuracy"],
        validation=best["value"],
        untuned=(summary["untuned"] or {}).get("metrics", {}).get("test:accuracy"),
        worker_seconds=sum(summary["worker_seconds"].values()),
        untuned_worker_seconds=sum(row.worker_seconds for row in billed if row.trial_id.endswith(UNTUNED)),
        seconds=summary["wall_seconds"],
    )


# ---- what came out


def targets(tuned: Sequence[Tuned], dataset: str) -> list[Target]:
    """What is promised of MNIST, and what was measured of it."""
    if dataset != "mnist":
        return []
    return [
        Target(
            promise=f"test accuracy with tuned {of.job.replace('-', ' ')}",
            limit=GOOD,
            measured=of.accuracy,
            unit="",
            at_least=True,
            note=f"un-tuned {_said(of.untuned)}; the job cost {of.worker_seconds:.0f} worker-seconds",
        )
        for of in tuned
    ]


def result(tuned: Sequence[Tuned], dataset: Dataset) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "dataset": {"name": dataset.name, "train": len(dataset.train[1])},
        "setting": {**BLOG, "seed": SEED},
        "tuned": [asdict(each) for each in tuned],
        "targets": targets_to_json(targets(tuned, dataset.name)),
    }


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of a document, from what result.json holds.

    Args:
        result: that of `run`.

    Returns:
        As markdown by name: "tuned", "promises" and, for one line, "short".
    """
    rows = []
    for of in result["tuned"]:
        job = of["job"].replace("-", " ")
        best = ", ".join(f"{name} {short(value)}" for name, value in of["best"].items())
        whole, seconds = f"{of['worker_seconds']:.0f} for the whole job", f"{of['seconds']:.0f}"
        rows += [
            [f"un-tuned, before {job}", _said(of["untuned"]), "", f"{of['untuned_worker_seconds']:.0f}", ""],
            [f"tuned {job}: {best}", _said(of["accuracy"]), str(of["epochs"]), whole, seconds],
        ]
    columns = ["", "test accuracy", "epochs of all trials", "worker-seconds", "seconds"]
    ends = [f"{_said(of['accuracy'])} with {of['job'].replace('-', ' ')} tuned" for of in result["tuned"]]
    return {"tuned": markdown(columns, rows), "promises": promised(result["targets"]), "short": " and ".join(ends)}


def show(tuned: Sequence[Tuned], dataset: Dataset) -> Group:
    """The tables that people look at."""
    parts: list[Any] = []
    for of in tuned:
        rows = [
            ("un-tuned", _said(of.untuned), "", f"{of.untuned_worker_seconds:.0f}"),
            ("tuned", _said(of.accuracy), _said(of.validation), f"{of.worker_seconds:.0f}"),
        ]
        title = f"{dataset.title}, tuned {of.job.replace('-', ' ')}: {of.epochs} epochs in {of.seconds:.0f} s"
        columns = ("", "test accuracy", "validation", "worker-seconds")
        statuses = ", ".join(f"{count} {status.lower()}" for status, count in of.trials.items())
        best = ", ".join(f"{name}={short(value)}" for name, value in of.best.items())
        parts += [table(title, columns, rows), f"trials: {statuses}; best: {best}", ""]
    kept = targets(tuned, dataset.name)
    return Group(*parts, *([promises(kept)] if kept else []))


def run(dataset: Dataset, folder: str, console: Console, out: Path, *, workers: int, trials: int, epochs: int) -> None:
    """Runs all jobs, prints what they came to, and writes it into `out`."""
    given: dict[str, Any] = {"workers": workers, "trials": trials, "epochs": epochs, "console": console}
    # Room for a gang of each size: where one has to make way for another, trials wait for workers to start.
    with cluster(2 * workers):
        tuned = [tune(job, dataset, folder, **given) for job in JOBS]
    console.print(show(tuned, dataset))
    console.print(f"written to {write(out, result(tuned, dataset))}")


def _said(accuracy: float | None) -> str:
    return "diverged or failed" if accuracy is None else f"{accuracy:.4f}"
