"""The two models of the published experiments: trainer, rows and ranges of each.

Source: U. Rosenberg, "Effectively solve distributed training convergence issues with Amazon SageMaker Hyperband
Automatic Model Tuning", AWS Machine Learning Blog, 2023: XGBoost on the direct-marketing data, with seven ranges and 30
jobs, 4 in parallel, Hyperband from 1 to 30 rounds, 1 against 3 workers; and a network on MNIST, 1 worker against 4 with
a parameter server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ray.train import ScalingConfig

from experiments.shared import blog
from experiments.shared.network import LEARNING, Setting
from experiments.shared.published import Options
from hpo.ranges import ParameterRange
from trainers import Trainer, XGBoostTrainer
from trainers.datasets import Dataset


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One model, its rows, and its search.

    Args:
        name: as it is asked for.
        title: as tables call it.
        objective: what trials are compared by.
        score: the metric's name, of the objective and of the test rows.
        load: its rows.
        trainer: makes its trainer, given workers and units.
        workers: of the distributed training.
        units: of the training without tuning.
        ranges: that are tuned.
        jobs: trials of a search.
        parallel: trials at once.
        max_resource: units of a search's longest trial.
    """

    name: str
    title: str
    score: str
    load: Callable[[Options], Dataset]
    trainer: Callable[[int, int], Trainer]
    workers: int
    units: int
    ranges: Mapping[str, ParameterRange]
    jobs: int = 30
    parallel: int = 1
    max_resource: int

    @property
    def objective(self) -> str:
        """What trials are compared by."""
        return f"validation:{self.score}"

    @property
    def test(self) -> str:
        """The same metric on rows that chose nothing."""
        return f"test:{self.score}"


def trees(workers: int, units: int) -> Trainer:
    """XGBoost over AllReduce."""
    return XGBoostTrainer(
        scaling=ScalingConfig(num_workers=workers), hyperparameters={**blog.STATIC, "num_round": units}
    )


def network(workers: int, units: int) -> Trainer:
    """The network through an asynchronous parameter server; a single worker has nobody to wait for anyway."""
    return Setting(name="image", workers=workers, asynchronous=True).trainer(units)


def problems(options: Options) -> dict[str, Problem]:
    """Both, by name; of a quick run, smaller and on fewer processes, whose starts would be most of its time."""
    xgboost = Problem(
        name="xgboost",
        title="XGBoost, direct marketing",
        score="auc",
        load=Options.bank_marketing,
        trainer=trees,
        workers=3,
        units=150,
        ranges=blog.RANGES,
        parallel=1 if options.quick else 4,
        max_resource=30,
    )
    image = Problem(
        name="image",
        title="Network, images",
        score="accuracy",
        load=Options.images,
        trainer=network,
        workers=2 if options.quick else 4,
        units=9 if options.quick else 20,
        ranges=LEARNING,
        jobs=12 if options.quick else 30,
        max_resource=9,
    )
    return {problem.name: problem for problem in (xgboost, image)}
