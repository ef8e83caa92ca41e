"""The settings of `experiments.scale_out`, their trainings, and the result of them all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from experiments.scaling.shard_models import WithoutSharing
from experiments.shared.blog import FIRST
from experiments.shared.scores import Scores
from trainers import Trainer
from trainers.datasets import Dataset

IMAGE, XGBOOST = "image", "xgboost"
IMAGE_WORKERS, XGBOOST_WORKERS = 4, 3


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting: how a model is trained.

    Args:
        name: of its steps.
        problem: `IMAGE` or `XGBOOST`.
        distribution: how workers come to one model.
        trainer: what trains it.
        metric: of its scores.
    """

    name: str
    problem: str
    distribution: str
    trainer: Trainer
    metric: str

    @property
    def label(self) -> str:
        """In pictures."""
        workers = self.trainer.workers
        return "1 worker" if workers == 1 else f"{workers} workers, {self.distribution}"

    @property
    def length(self) -> str:
        """How long it trains."""
        return f"{self.trainer.units} {self.trainer.unit}s"


@dataclass(frozen=True, kw_only=True)
class Training:
    """What one training came to.

    Args:
        curves: of each channel, the metric after each unit; empty where it diverged.
        seconds: of wall time, the start of its workers included.
        training_seconds: of that, in which they trained.
        worker_seconds: billed.
        diverged: its loss or parameters were no finite numbers any more.
    """

    curves: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = math.nan
    training_seconds: float = math.nan
    worker_seconds: float = math.nan
    diverged: bool = False


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A row and what it came to, a training a seed.

    Args:
        row: which.
        trainings: by seed, rising.
        errors: by channel, the standard error of one score from the rows that it was measured on.
        work: processor seconds that one worker needs for its share of the rows.
    """

    row: Row
    trainings: Sequence[Training]
    errors: Mapping[str, float | None]
    work: float = math.nan

    @property
    def diverged(self) -> int:
        """How many trainings did."""
        return sum(training.diverged for training in self.trainings)

    def last(self, channel: str) -> Scores | None:
        """Scores after the last unit; None where every training diverged."""
        return self._scores(channel, [training.curves[channel][-1] for training in self.trained])

    def best(self, channel: str) -> Scores | None:
        """Scores of the best unit, which a few rows choose as well as the model."""
        return self._scores(channel, [max(training.curves[channel]) for training in self.trained])

    def mean(self, quantity: str) -> float:
        """Of a quantity of the trainings, over those that did not diverge."""
        found = [getattr(training, quantity) for training in self.trained]
        return sum(found) / len(found) if found else math.nan

    @property
    def trained(self) -> list[Training]:
        """The trainings that did not diverge."""
        return [training for training in self.trainings if not training.diverged]

    def _scores(self, channel: str, values: Sequence[float]) -> Scores | None:
        return Scores(values=tuple(values), row_error=self.errors[channel]) if values else None


def verdict(measured: Mapping[str, Measured], marketing: Dataset) -> str:
    """What distribution did to both models, in two sentences.

    Args:
        measured: the rows, by name.
        marketing: what XGBoost was trained on.
    """
    said = []
    alone, asynchronous = measured["image-1"].last("test"), measured["image-4-async"].last("test")
    kept = measured["image-4-allreduce"].last("test")
    if alone is not None and kept is not None:
        came = "diverged" if asynchronous is None else f"came to {asynchronous.mean:.3f}"
        said.append(
            f"On {IMAGE_WORKERS} asynchronous workers the network {came} where one worker comes to {alone.mean:.3f} "
            f"(test accuracy); over AllReduce it comes to {kept.mean:.3f}."
        )
    one, three = measured["xgboost-1"].last("validation"), measured["xgboost-3-allreduce"].last("validation")
    if one is not None and three is not None:
        error = three.row_error or 0.0  # The blog's is of one seed; that seeds agree makes its rows no more.
        published = FIRST["xgboost-3-allreduce"].score
        does = "comes out" if abs(three.mean - published) <= 2 * error else "does not come out"
        said.append(
            f"XGBoost on {XGBOOST_WORKERS} workers comes to {three.text}, on one to {one.text} (validation AUC"
            f"{', generated rows' if marketing.synthetic else ''}): the blog's drop to {published} {does}."
        )
    return " ".join(said)


def result(measured: Mapping[str, Measured], marketing: Dataset, apart: WithoutSharing) -> dict[str, Any]:
    """Everything measured, for result.json."""

    def scores(found: Scores | None) -> dict[str, Any] | None:
        if found is None:
            return None
        errors = {"standard_error_of_rows": found.row_error, "standard_error_over_seeds": found.seed_error}
        return {"mean": found.mean, **errors}

    rows = [
        {
            "row": each.row.name,
            "workers": each.row.trainer.workers,
            "distribution": each.row.distribution,
            "length": each.row.length,
            "metric": each.row.metric,
            "training_seconds": each.mean("training_seconds"),
            "work_seconds": each.work,
            "worker_seconds": each.mean("worker_seconds"),
            "validation": scores(each.last("validation")),
            "best_validation": scores(each.best("validation")),
            "test": scores(each.last("test")),
            "blog": asdict(FIRST[each.row.name]) if each.row.name in FIRST else None,
            "diverged": each.diverged,
            "trainings": [asdict(training) for training in each.trainings],
        }
        for each in measured.values()
    ]
    return {"verdict": verdict(measured, marketing), "rows": rows, "without_sharing_histograms": asdict(apart)}
