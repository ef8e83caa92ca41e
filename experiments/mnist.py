"""A small network on MNIST: the loss of accuracy by distribution, and its recovery by tuning.

    python -m experiments.mnist [--dataset mnist|digits] [--data-dir DIR] [--epochs 20] [--workers 4] [--out DIR]
    python -m experiments.mnist --tune [--dataset mnist|digits] [--data-dir DIR] [--epochs 9] [--trials 17] [--out DIR]

The network has 784-128-64-10 units and ReLU; it is trained by SGD with momentum 0.9, learning rate 0.1 and batches of
100 for 20 epochs, pixels divided by 255. Its 50,000 training rows are what is left of MNIST's 60,000 once 10,000 are
drawn for validation; the 10,000 test images are the published ones. The first command trains it, nothing else changed,

(a) on one worker;
(b) on four workers through an asynchronous parameter server;
(c) on four workers over AllReduce, each with the batch of (a), so that an update has four times the rows: with the
    learning rate as it is, with four times that (Goyal et al. 2017), and with four times that after a warm-up.

The second tunes it for asynchronous workers: see `experiments.shared.network_tuning`. The whole training function is in
`experiments.shared.network`. With `--dataset digits` it learns scikit-learn's 8x8 digits, which need no download.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group

from experiments.shared import network_tuning
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.shared.network import (
    BLOG,
    GOOD,
    SEED,
    Setting,
    channels,
    mean_staleness,
    train as train,  # Job files name it here.
)
from hpo.cli import errors_in_words
from trainers import DivergedError
from trainers.cluster import cluster
from trainers.datasets import Dataset, load

NEAR_CHANCE = 0.2


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one setting came to.

    Args:
        setting: which.
        diverged: its loss or parameters were no finite numbers any more; then nothing below but `seconds` is known.
        seconds: of the training, the start of its workers included.
        accuracy: on the test rows at the end.
        validation: the same on the validation rows.
        curve: accuracy on the test rows after each epoch.
        worker_seconds: billed.
        details: what the trainer recorded beside: staleness, bytes moved, waiting.
    """

    setting: Setting
    diverged: bool
    seconds: float
    accuracy: float = math.nan
    validation: float = math.nan
    curve: list[float] = field(default_factory=list)
    worker_seconds: float = math.nan
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def staleness(self) -> float:
        """See `mean_staleness`."""
        return mean_staleness(_pushes(self.details))


def _pushes(details: Mapping[str, Any]) -> Mapping[str, int]:
    pushes: Mapping[str, int] = details.get("parameter_server", {}).get("staleness", {})
    return pushes


def settings(workers: int, epochs: int) -> list[Setting]:
    """All settings: one worker first, the asynchronous ones second."""
    linear, warm_up = {"learning_rate_rule": "linear"}, max(1, epochs // 4)
    return [
        Setting(name="one worker", workers=1),
        Setting(name="asynchronous server", workers=workers, asynchronous=True),
        Setting(name="AllReduce", workers=workers),
        Setting(name=f"AllReduce, lr x{workers}", workers=workers, changed=linear),
        Setting(
            name=f"AllReduce, lr x{workers}, warm-up",
            workers=workers,
            changed=linear | {"warmup_epochs": warm_up},
        ),
    ]


def measure(setting: Setting, dataset: Dataset, epochs: int, folder: str, *, in_hand: bool = False) -> Outcome:
    """Trains one setting."""
    began = time.perf_counter()
    try:
        trained = setting.trainer(epochs, in_hand=in_hand).fit(channels(dataset), storage_path=folder, seed=SEED)
    except DivergedError:
        return Outcome(setting=setting, diverged=True, seconds=time.perf_counter() - began)
    return Outcome(
        setting=setting,
        diverged=False,
        seconds=time.perf_counter() - began,
        accuracy=trained.metrics["test:accuracy"],
        validation=trained.metrics["validation:accuracy"],
        curve=[report.metrics["test:accuracy"] for report in trained.reports],
        worker_seconds=trained.worker_seconds,
        details=trained.details,
    )


# ---- what came out


def targets(outcomes: Sequence[Outcome], dataset: str) -> list[Target]:
    """What is promised of MNIST, and what was measured of it."""
    alone = outcomes[0]
    note = f"{len(alone.curve)} epochs"
    promise = Target(
        promise="test accuracy on one worker", limit=GOOD, measured=alone.accuracy, unit="", note=note, at_least=True
    )
    return [promise] if dataset == "mnist" else []


def near_chance(outcome: Outcome) -> bool:
    """Whether it learnt next to nothing; what diverged knows nothing any more."""
    return outcome.diverged or outcome.accuracy <= NEAR_CHANCE


def observation(outcomes: Sequence[Outcome]) -> str:
    """What the asynchronous workers came to, in a sentence."""
    alone, asynchronous = outcomes[:2]
    became = "diverged" if asynchronous.diverged else f"became {asynchronous.accuracy:.4f}"
    near = "near chance" if near_chance(asynchronous) else "not near chance"
    return (
        f"On {asynchronous.setting.workers} asynchronous workers, nothing else changed, a test accuracy of "
        f"{alone.accuracy:.4f} {became}: {near}."
    )


def result(outcomes: Sequence[Outcome], dataset: Dataset) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "dataset": {"name": dataset.name, "train": len(dataset.train[1])},
        "setting": {**BLOG, "seed": SEED},
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "asynchronous_near_chance": near_chance(outcomes[1]),
        "targets": targets_to_json(targets(outcomes, dataset.name)),
    }


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of a document, from what result.json holds.

    Args:
        result: that of `main`, with or without `--tune`.

    Returns:
        As markdown by name: "accuracy", "promises" and, for one line, "short"; of a search those of
        `experiments.shared.network_tuning`.
    """
    if "tuned" in result:
        return network_tuning.page_tables(result)
    rows = [
        [
            of["setting"]["name"],
            str(of["setting"]["workers"]),
            "diverged" if of["diverged"] else f"{of['accuracy']:.4f}",
            f"{max(of['curve']):.4f}" if of["curve"] else "",
            f"{mean_staleness(_pushes(of['details'])):.1f}",
            "" if of["worker_seconds"] is None else f"{of['worker_seconds']:.0f}",
        ]
        for of in result["outcomes"]
    ]
    columns = ["", "workers", "at the end", "best epoch's", "staleness, updates", "worker-seconds"]
    ends = ["diverging" if of["diverged"] else f"{of['accuracy']:.3f}" for of in result["outcomes"]]
    return {
        "accuracy": markdown(columns, rows),
        "promises": promised(result["targets"]),
        "short": f"{ends[0]} on one worker, {ends[1]} on {rows[1][1]} asynchronous ones with nothing else changed",
    }


def show(outcomes: Sequence[Outcome], dataset: Dataset) -> Group:
    """The tables that people look at: accuracies, `best` that of the best epoch, and worker-seconds billed."""
    rows = [
        (
            outcome.setting.name,
            str(outcome.setting.workers),
            "diverged" if outcome.diverged else f"{outcome.accuracy:.4f}",
            f"{max(outcome.curve, default=math.nan):.4f}",
            f"{outcome.validation:.4f}",
            f"{outcome.staleness:.2f}",
            f"{outcome.seconds:.1f}",
            f"{outcome.worker_seconds:.0f}",
        )
        for outcome in outcomes
    ]
    columns = ("", "workers", "test", "best", "validation", "staleness", "seconds", "billed")
    title = f"{dataset.title}: {len(dataset.train[1]):,} rows to train on, {os.cpu_count()} cores"
    kept = targets(outcomes, dataset.name)
    return Group(table(title, columns, rows), observation(outcomes), *([Group("", promises(kept))] if kept else []))


def main(
    dataset: Annotated[str, typer.Option(help="mnist, or digits, which needs no download.")] = "mnist",
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds MNIST's files.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of each training, or of a tuned trial.")] = None,
    workers: Annotated[int, typer.Option(min=2, help="Where there are several.")] = 4,
    tune: Annotated[bool, typer.Option("--tune", help="Tune it for asynchronous workers.")] = False,
    trials: Annotated[int, typer.Option(min=1, help="Of each tuning job.")] = 17,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/mnist"),
) -> None:
    """Train a network on MNIST on one worker and on several, or tune it for several."""
    console = Console(highlight=False)
    data = load(dataset, data_dir=data_dir)
    with tempfile.TemporaryDirectory(prefix="warmband-mnist-") as scratch:
        if tune:
            network_tuning.run(data, scratch, console, out, workers=workers, trials=trials, epochs=epochs or 9)
            return
        outcomes = []
        with cluster(workers):  # One Ray for all settings.
            for setting in settings(workers, epochs or 20):
                outcomes.append(measure(setting, data, epochs or 20, scratch))
                console.print(f"{setting.name}: {outcomes[-1].seconds:.0f} s")
    console.print(show(outcomes, data))
    console.print(f"written to {write(out, result(outcomes, data))}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
