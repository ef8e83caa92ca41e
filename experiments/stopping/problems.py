"""The problems on which early stopping is judged: rows, trainer, ranges and length of a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ray.train import ScalingConfig

from experiments.shared.blog import RANGES, marketing
from experiments.stopping import network
from hpo.ranges import ParameterRange
from trainers import TorchTrainer, Trainer, XGBoostTrainer
from trainers.datasets import Dataset, load

BOOSTING = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3, "colsample_bylevel": 0.5}


@dataclass(frozen=True, kw_only=True)
class StoppingProblem:
    """What is trained with early stopping, and how trials are compared.

    Args:
        name: as it is asked for.
        score: the metric's name; more is better.
        score_name: as tables call it.
        unit: one of a trial's resource.
        units: of a trial that runs to the end.
        workers: of the gang.
        static: hyperparameters that are not tuned.
        ranges: those that are.
        load: its rows, from a folder where one is given.
        trainer: makes its trainer, given the workers.
    """

    name: str
    score: str
    score_name: str
    unit: str
    units: int
    workers: int
    static: Mapping[str, Any]
    ranges: Mapping[str, ParameterRange]
    load: Callable[[str | None], Dataset]
    trainer: Callable[[int], Trainer]

    @property
    def objective(self) -> str:
        """What trials are compared by."""
        return f"validation:{self.score}"

    @property
    def test(self) -> str:
        """The same metric on rows that chose nothing."""
        return f"test:{self.score}"


def _scaling(workers: int) -> ScalingConfig:
    return ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1})


BANK = StoppingProblem(
    name="bank",
    score="auc",
    score_name="AUC",
    unit="round",
    units=30,
    workers=3,
    static=BOOSTING,
    ranges=RANGES,
    load=lambda data_dir: load(marketing(data_dir), data_dir=data_dir),
    trainer=lambda workers: XGBoostTrainer(scaling=_scaling(workers), hyperparameters=BOOSTING),
)
DIGITS = StoppingProblem(
    name="digits",
    score="accuracy",
    score_name="accuracy",
    unit="epoch",
    units=27,
    workers=2,
    static={},
    ranges=network.RANGES,
    load=lambda data_dir: load("digits"),
    trainer=lambda workers: TorchTrainer(network.train, scaling=_scaling(workers), metrics=network.METRICS),
)
PROBLEMS = {problem.name: problem for problem in (BANK, DIGITS)}
