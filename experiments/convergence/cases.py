"""A distributed run, its twin on one worker, and both with one thing changed."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ray.train import ScalingConfig

from experiments.convergence.causes import BOOSTING, LINK, Change, Run
from experiments.convergence.gradient_noise import NOISE, SIGNAL, watched
from experiments.shared.network import Setting, channels, mean_staleness
from experiments.shared.problems import trees
from experiments.shared.published import Options
from experiments.shared.scores import Scores
from hpo.job_file import read_job
from hpo.uncertainty import standard_error
from trainers import Channel, ConfigurationError, DivergedError, ParameterServerTrainer, TorchTrainer, Trainer
from trainers.channels import Table, open_channels
from trainers.pytorch import ARGUMENT

WORKERS, MODE = "num_workers", "mode"
ALONE, DISTRIBUTED, EXACT = "one worker", "distributed", "one worker with exact trees"
"""Ways to train; the others are called after what is changed."""
IMAGE_LINK = 125_000_000
"""Bytes a second of the link that the blog's network is trained over: 1 Gbit/s."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A distributed run whose twin on one worker does better.

    Args:
        title: of its data and model.
        trainer: the distributed run's, static hyperparameters and all.
        channels: what it reads.
        metric: what is compared, such as "validation:accuracy".
        maximize: whether a larger value is better.
        simulated: its workers are simulated in this process, on a clock of their own.
        repeat: how often each row appears, which makes no score surer.
    """

    title: str
    trainer: Trainer
    channels: Mapping[str, Channel]
    metric: str
    maximize: bool = True
    simulated: bool = True
    repeat: int = 1

    def __post_init__(self) -> None:
        if self.run.workers < 2:
            raise ConfigurationError(
                f"the run of {self.title} has {self.run.workers} worker, and so no twin to be compared with; give "
                f"trainer.num_workers, or the hyperparameter {WORKERS!r}, 2 or more"
            )
        if self.trainer.units is None:
            raise ConfigurationError(
                f"nothing says how long to train; give {self.trainer.resource_names[0]} in trainer.hyperparameters"
            )

    @property
    def run(self) -> Run:
        """How it is distributed."""
        hyperparameters = self.trainer.hyperparameters
        if not _learns_by_steps(self.trainer):
            mode = BOOSTING
        elif isinstance(self.trainer, ParameterServerTrainer):
            mode = str(hyperparameters.get(MODE, "sync"))
        else:
            mode = "sync"
        workers = int(hyperparameters.get(WORKERS) or self.trainer.workers)
        return Run(workers=workers, mode=mode, hyperparameters=hyperparameters)

    @property
    def watched(self) -> bool:
        """Whether noise of gradients can be measured and added: a function trains, and no model is compiled."""
        return _learns_by_steps(self.trainer) and not self.trainer.arguments.get("compile")

    def alone(self) -> Trainer:
        """One worker, nothing else changed."""
        # What is about several workers means nothing here, or is refused.
        return self._with({}, 1, without=("backup_workers", "delay_ms", LINK), measured=True)

    def distributed(self, change: Change | None = None) -> Trainer:
        """The distributed run, with one thing changed."""
        changed = change or Change(causes=(), said="")
        return self._with(changed.hyperparameters, self.run.workers, noise=changed.noise, measured=change is None)

    def exact(self) -> Trainer | None:
        """One worker with XGBoost's exact trees, which do not distribute; None where it has none of the usual ones."""
        given = self.trainer.hyperparameters
        if self.run.mode != BOOSTING or self.trainer.scaling.use_gpu or given.get("booster", "gbtree") != "gbtree":
            return None
        if given.get("tree_method", "auto") not in ("auto", "hist", "approx"):
            return None
        # `max_bin` and the like are of histograms alone.
        return self._with({"tree_method": "exact"}, 1, without=("max_bin", "max_leaves", "grow_policy"))

    def rows(self, change: Change | None, seed: int) -> dict[str, Channel]:
        """What the distributed run reads with one thing changed."""
        channels = dict(self.channels)
        if change is not None and change.shuffled:
            table = channels["train"].read_whole()
            order = np.random.default_rng(seed).permutation(len(table.labels))
            channels["train"] = _channel("train", table, order)
        if change is not None and change.whole:
            for name in channels.keys() - {"train"}:
                table = channels[name].read_whole()
                # Row i belongs to worker i modulo their number: so each gets all rows.
                channels[name] = _channel(name, table, np.repeat(np.arange(len(table.labels)), self.run.workers))
        return channels

    def label_shares(self) -> list[dict[str, float]] | None:
        """Of each worker's training rows, the share of each label; None where labels are no classes."""
        workers = self.run.workers
        labels = [self.channels["train"].read(rank, workers).labels for rank in range(workers)]
        classes = np.unique(np.concatenate(labels))
        if len(classes) > 100 or not np.all(classes == np.round(classes)):
            return None
        return [{f"{label:g}": float(np.mean(own == label)) for label in classes} for own in labels]

    def row_error(self, score: float) -> float | None:
        """The standard error of a score from the rows that it was measured on; None where it is not known."""
        name, _, metric = self.metric.rpartition(":")
        if name not in self.channels:
            return None
        error = standard_error(metric, score, self.channels[name].read_whole().labels)
        return None if error is None else error * math.sqrt(self.repeat)

    def _with(
        self,
        changed: Mapping[str, Any],
        workers: int,
        without: Sequence[str] = (),
        noise: float = 1.0,
        measured: bool = False,
    ) -> Trainer:
        given = {name: value for name, value in self.trainer.hyperparameters.items() if name not in without}
        given |= changed
        arguments = dict(self.trainer.arguments)
        if self.watched and (measured or noise > 1):
            arguments[ARGUMENT] = watched(arguments[ARGUMENT], noise, measured=measured)
        if self.simulated:
            given |= {WORKERS: workers, MODE: given.get(MODE, self.run.mode)}
            here = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
            return ParameterServerTrainer(scaling=here, hyperparameters=given, **arguments)
        if WORKERS in given:
            given[WORKERS] = workers
        had = self.trainer.scaling
        scaling = ScalingConfig(
            num_workers=workers,
            use_gpu=had.use_gpu,
            resources_per_worker=had.resources_per_worker,
            placement_strategy=had.placement_strategy,
        )
        return type(self.trainer)(scaling=scaling, hyperparameters=given, **arguments)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one training came to.

    Args:
        curve: the metric after each unit.
        diverged: its loss or parameters were no finite numbers any more; then there is no curve.
        staleness: how many pushes were so many updates old.
        seconds: of wall time.
        signal: after each unit, the squared length of the gradient, where it was measured; see `gradient_noise`.
        noise: the same of the trace of the covariance of one example's gradient.
        link_seconds: that pushes and answers were on the way for, all together, where the link has a limit.
        pushes: how many.
    """

    curve: list[float] = field(default_factory=list)
    diverged: bool = False
    staleness: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    signal: list[float] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    link_seconds: float = 0.0
    pushes: int = 0

    @property
    def stale(self) -> float:
        """Updates between a worker's pull and its push, in the mean."""
        return mean_staleness(self.staleness)


def measure(case: Case, trainer: Trainer, channels: Mapping[str, Channel], seed: int, folder: Path) -> Outcome:
    """Trains once.

    Raises:
        ConfigurationError: the metric is not among those reported.
        TrialError, GangError, ResourcesError: as `Trainer.fit`.
    """
    began = time.perf_counter()
    try:
        trained = trainer.fit(channels, storage_path=str(folder), seed=seed)
    except DivergedError:
        return Outcome(diverged=True, seconds=time.perf_counter() - began)
    if case.metric not in trained.metrics:
        raise ConfigurationError(
            f"objective_metric_name is {case.metric!r}, and the run reports "
            f"{', '.join(sorted(trained.metrics.keys() - {SIGNAL, NOISE}))}; give one of these"
        )
    seen = trained.details.get("parameter_server", {})
    return Outcome(
        curve=[report.metrics[case.metric] for report in trained.reports],
        staleness=seen.get("staleness", {}),
        seconds=time.perf_counter() - began,
        signal=[report.metrics[SIGNAL] for report in trained.reports if SIGNAL in report.metrics],
        noise=[report.metrics[NOISE] for report in trained.reports if NOISE in report.metrics],
        link_seconds=seen.get("link_seconds", 0.0),
        pushes=seen.get("pushes", 0),
    )


def scored(outcomes: Sequence[Outcome], worst: float, row_error: float | None = None) -> Scores:
    """The last scores of one way to train; what diverged, or is no number, counts as the worst that was seen."""
    lasts = [outcome.curve[-1] if outcome.curve else math.nan for outcome in outcomes]
    return Scores(values=tuple(last if math.isfinite(last) else worst for last in lasts), row_error=row_error)


# ---- where a case comes from


def image_case(options: Options, epochs: int, *, real: bool) -> Case:
    """The blog's network on four asynchronous workers."""
    dataset = options.images()
    trainer = Setting(name="distributed", workers=4, asynchronous=True).trainer(epochs)
    trainer = trainer.with_hyperparameters({LINK: IMAGE_LINK})
    return Case(
        title=f"{dataset.title}, {epochs} epochs",
        trainer=trainer,
        channels=open_channels(channels(dataset)),
        metric="validation:accuracy",
        simulated=not real,
    )


def xgboost_case(options: Options, rounds: int) -> Case:
    """The blog's XGBoost on three workers."""
    dataset = options.bank_marketing()
    channels = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}
    return Case(
        title=f"{dataset.title}, {rounds} rounds",
        trainer=trees(3, rounds),
        channels=open_channels(channels),
        metric="validation:auc",
        simulated=False,
        repeat=options.repeat,
    )


def job_case(path: Path, options: Options, epochs: int | None, *, real: bool, allow_code: bool = False) -> Case:
    """The run of a job file: its trainer with the static hyperparameters.

    Raises:
        ConfigurationError: the file is wrong, or the run cannot be simulated.
    """
    spec = read_job(path, allow_code=allow_code)
    trainer = spec.trainer.trainer()
    units = epochs or trainer.units or (spec.tuning.hyperband and spec.tuning.hyperband.max_resource)
    if units:
        others = [name for name in trainer.resource_names[1:] if name in trainer.hyperparameters]
        name = others[0] if others else trainer.resource_names[0]
        trainer = trainer.with_hyperparameters({name: units})
    simulated = _learns_by_steps(trainer) and not real
    if simulated:
        _check_simulated(trainer)
    return Case(
        title=f"{spec.name or path.stem}, {units} {trainer.unit}s",
        trainer=trainer,
        channels=open_channels(spec.channels(options.data_dir)),
        metric=spec.tuning.objective_metric_name,
        maximize=spec.tuning.objective_type == "Maximize",
        simulated=simulated,
        repeat=spec.data.repeat if spec.data else 1,
    )


def _learns_by_steps(trainer: Trainer) -> bool:
    return isinstance(trainer, TorchTrainer | ParameterServerTrainer)


def _check_simulated(trainer: Trainer) -> None:
    """Refuses what the simulation would leave out."""
    alone: list[str] = [name for name in ("precision", "compile") if name in trainer.arguments]
    if trainer.scaling.use_gpu:
        alone.append("use_gpu")
    if alone:
        raise ConfigurationError(
            f"the trainer has {', '.join(alone)}, which workers simulated on the CPU have not; give --real, or leave "
            "it out"
        )


def _channel(name: str, table: Table, rows: Any) -> Channel:
    features = table.features.iloc[rows] if hasattr(table.features, "iloc") else table.features[rows]
    if table.feature_names is None or hasattr(features, "iloc"):
        return Channel.of((features, table.labels[rows]), name=name)
    import pandas as pd

    return Channel.of((pd.DataFrame(features, columns=list(table.feature_names)), table.labels[rows]), name=name)
