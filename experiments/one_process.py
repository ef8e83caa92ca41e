"""A whole small job in one process: here with `num_workers=0`, and Optuna's Hyperband with XGBoost.

    python -m experiments.one_process [--repeats 7] [--threads N] [--data-dir DIR] [--out DIR]

30 configurations out of the published seven ranges are tuned by Hyperband from 1 to 30 rounds. Both sides begin with
the rows in memory and end with the best trial, with as many threads; here the SQLite record, a checkpoint a rung and
the un-tuned run are part of it. Optuna keeps its study in memory, shares one matrix among its trials, drives a booster
round by round without XGBoost's callbacks, and is given the faster kind of matrix. Both train the same configurations,
since what a round costs depends on its tree's depth above all; the two prune differently, so that compared is the time
a round: the median over repeats, each with configurations of its own and the two sides in turn.
"""

from __future__ import annotations

import io
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import optuna
import typer
import xgboost
from ray.train import ScalingConfig
from rich.console import Console, Group

from experiments.baselines.optuna_trials import matrices, suggest
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.shared.blog import RANGES, marketing
from hpo import HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.cli import errors_in_words
from hpo.record import Store
from hpo.sagemaker import tuned_trials
from hpo.search import derive_seed
from trainers import XGBoostTrainer
from trainers.datasets import Dataset, load

TRIALS, ROUNDS, ETA, REPEATS = 30, 30, 3, 7
MATRICES = ("QuantileDMatrix", "DMatrix")
COLUMNS = ("", "seconds", "rounds", "ms a round", "best AUC")
STATIC = {"objective": "binary:logistic", "eval_metric": "auc"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One job: its wall seconds, the rounds that it trained in all, and the best objective."""

    seconds: float
    rounds: int
    best: float

    @property
    def per_round(self) -> float:
        """Seconds of the whole job by rounds trained."""
        return self.seconds / self.rounds


@dataclass(frozen=True, kw_only=True)
class OneProcess:
    """The jobs of every repeat.

    Args:
        threads: that XGBoost was given on both sides.
        here: this tuner's.
        optuna: Optuna's, by its kind of matrix.
    """

    threads: int
    here: list[Run]
    optuna: dict[str, list[Run]]

    @property
    def matrix(self) -> str:
        """Optuna's faster kind of matrix."""
        return max(self.optuna, key=self.ratio_to)

    @property
    def ratio(self) -> float:
        """How many times Optuna's time a round takes here."""
        return self.ratio_to(self.matrix)

    def ratio_to(self, matrix: str) -> float:
        """The same, against Optuna with one kind of matrix."""
        pairs = zip(self.here, self.optuna[matrix], strict=True)
        return statistics.median(here.per_round / there.per_round for here, there in pairs)


def compare(dataset: Dataset, scratch: str, *, repeats: int = REPEATS, threads: int | None = None) -> OneProcess:
    """Runs both sides in turn.

    Args:
        dataset: whose training and validation rows are used.
        scratch: folder for records and checkpoints.
        repeats: how often, each time with another seed.
        threads: for XGBoost; None is every core that this process may use.
    """
    threads = threads or len(os.sched_getaffinity(0))
    here, there = list[Run](), {matrix: list[Run]() for matrix in MATRICES}
    for seed in range(repeats):
        run, configurations = in_hand(dataset, f"{scratch}/one-process-{seed}", seed, threads)
        here.append(run)
        # The first in turn, so that neither kind profits from its place.
        for matrix in MATRICES if seed % 2 else MATRICES[::-1]:
            there[matrix].append(with_optuna(dataset, configurations, seed, threads, matrix))
    return OneProcess(threads=threads, here=here, optuna=there)


def in_hand(dataset: Dataset, folder: str, seed: int, threads: int) -> tuple[Run, list[dict[str, Any]]]:
    """The job here; returns also its configurations, in their order."""
    Path(folder).mkdir(parents=True)
    url = f"sqlite:///{folder}/store.db"
    tuner = HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": threads}), hyperparameters=STATIC
        ),
        "validation:auc",
        RANGES,
        strategy="Hyperband",
        strategy_config=StrategyConfig(
            HyperbandStrategyConfig(max_resource=ROUNDS, min_resource=1, suggestions="random")
        ),
        max_jobs=TRIALS,
        random_seed=seed,
        storage_path=folder,
        store=url,
        # What a terminal would show is made and thrown away.
        console=Console(file=io.StringIO()),
    )
    began = time.perf_counter()
    tuner.fit({"train": dataset.train, "validation": dataset.validation}, job_name="job")
    seconds = time.perf_counter() - began
    with Store(url) as store:
        summary, trials = store.job("job").summary, tuned_trials(store, "job")
    rounds = summary["resource_used"] + summary["untuned"]["resource"]
    run = Run(seconds=seconds, rounds=rounds, best=summary["best"]["value"])
    return run, [trial.hyperparameters for trial in trials]


def with_optuna(
    dataset: Dataset, configurations: Sequence[Mapping[str, Any]], seed: int, threads: int, matrix: str
) -> Run:
    """The job with Optuna: its pruner, its study in memory, a booster driven round by round."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=f"one-process-{seed}",  # By which the pruner deals trials to brackets.
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=seed),
        pruner=optuna.pruners.HyperbandPruner(min_resource=1, max_resource=ROUNDS, reduction_factor=ETA),
    )
    for configuration in configurations:
        study.enqueue_trial(dict(configuration))
    trained = 0
    began = time.perf_counter()
    train, validation = matrices(dataset, matrix, threads)

    def objective(trial: optuna.Trial) -> float:
        nonlocal trained
        drawn = {name: suggest(trial, name, bounds) for name, bounds in RANGES.items()}
        del drawn["num_round"]  # Has no effect under Hyperband, on either side.
        fixed = {"verbosity": 1, "nthread": threads, "seed": derive_seed(seed, trial.number)}
        booster = xgboost.Booster({**STATIC, **drawn, **fixed}, [train, validation])
        value = float("nan")
        for iteration in range(ROUNDS):
            booster.update(train, iteration)
            trained += 1
            value = float(booster.eval_set([(validation, "validation")], iteration).rpartition(":")[2])
            trial.report(value, iteration + 1)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=len(configurations))
    return Run(seconds=time.perf_counter() - began, rounds=trained, best=study.best_value)


# ---- what came out


def target(measured: OneProcess) -> Target:
    """The promise, and what was measured of it."""
    return Target(
        promise="the job in one process, by rounds, times Optuna's",
        limit=1.5,
        measured=measured.ratio,
        unit="x",
        note=f"median of {len(measured.here)}; Optuna with {measured.matrix}; {measured.threads} threads each",
    )


def rows(measured: OneProcess) -> list[tuple[str, ...]]:
    """A line for each side: medians over its jobs."""
    sides = {"here": measured.here, **{f"Optuna, `{kind}`": runs for kind, runs in measured.optuna.items()}}
    return [
        (
            f"{name}, {measured.threads} threads",
            f"{statistics.median(run.seconds for run in runs):.2f}",
            f"{statistics.median(run.rounds for run in runs):g}",
            f"{1000 * statistics.median(run.per_round for run in runs):.2f}",
            f"{statistics.median(run.best for run in runs):.4f}",
        )
        for name, runs in sides.items()
    ]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, and the words of README.md."""
    found = result["one_process"]
    measured = OneProcess(
        threads=found["threads"],
        here=[Run(**run) for run in found["here"]],
        optuna={kind: [Run(**run) for run in runs] for kind, runs in found["optuna"].items()},
    )
    return {
        "jobs": markdown(COLUMNS, rows(measured)),
        "promises": promised(result["targets"]),
        "ratio": f"{measured.ratio:.1f} times",
    }


def show(measured: OneProcess) -> Group:
    """The table that people look at."""
    title = f"{TRIALS} trials in one process, medians of {len(measured.here)} jobs"
    return Group(table(title, COLUMNS, rows(measured)), "")


def main(
    repeats: Annotated[int, typer.Option(min=1, help="Jobs on each side.")] = REPEATS,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads for XGBoost; by default every core.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/one_process"),
) -> None:
    """Measure a whole 30-trial job in one process: here, and with Optuna's HyperbandPruner."""
    console = Console(highlight=False)
    name = marketing(data_dir)
    dataset = load(name, data_dir=data_dir)
    with tempfile.TemporaryDirectory(prefix="warmband-one-process-") as scratch:
        measured = compare(dataset, scratch, repeats=repeats, threads=threads)
    kept = [target(measured)]
    console.print(show(measured), promises(kept))
    result = {
        "dataset": {"name": dataset.name, "synthetic": dataset.synthetic, "train": len(dataset.train)},
        "one_process": asdict(measured),
        "targets": targets_to_json(kept),
    }
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
