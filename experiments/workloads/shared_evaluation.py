"""Cost of evaluation where many workers each evaluate a share: one of them, simulated."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers import Channel
from trainers.channels import Table
from trainers.datasets import load
from trainers.xgboost import Evaluation, Share

SHARES, OF_TRAIN = 16, 0.2
PARAMETERS: dict[str, Any] = {
    "objective": "binary:logistic",
    "tree_method": "hist",
    "max_depth": 6,
    "nthread": 1,
    "seed": 1,
}
WARM_UP = 2


@dataclass(frozen=True, kw_only=True)
class Evaluating:
    """Seconds of a round on one of `shares` workers, one thread each; what they wait for each other is not among them.

    Args:
        rows: that all train on.
        evaluated: that all evaluate on.
        shares: how many workers there are.
        update: median seconds of training a round on a share.
        seconds: median seconds of evaluating it by way: "here" and "by hand" are logloss of a share, "here, AUC" counts
            the pairs of a share and all rows of the rarer class, and "whole" is XGBoost's AUC of all rows.
    """

    rows: int
    evaluated: int
    shares: int
    update: float
    seconds: dict[str, float]

    def part(self, way: str) -> float:
        """What evaluating is of a round."""
        return self.seconds[way] / (self.update + self.seconds[way])


def measure(name: str, data_dir: str | None, repeat: int, rounds: int, shares: int = SHARES) -> Evaluating:
    """Trains one worker's share, and evaluates a share of a fifth as many rows in each way."""
    import xgboost

    train = Channel.of(load(name, data_dir=data_dir, repeat=repeat).train)
    mine = train.read(0, shares)
    everyones = train.read(0, round(1 / OF_TRAIN))
    part = _rows(everyones, slice(0, None, shares))
    matrix = xgboost.QuantileDMatrix(mine.features, mine.labels, nthread=1)

    share = xgboost.DMatrix(part.features, part.labels, nthread=1)
    whole = xgboost.QuantileDMatrix(everyones.features, everyones.labels, nthread=1, ref=matrix)
    held = Share.of(share, part.labels, 0, 1, _alone)
    rarer = (shares * held.totals[0], shares * held.totals[1])
    of_all = Share(
        matrix=share,
        labels=part.labels,
        rarer=held.rarer,
        totals=rarer,
        positive_is_rarer=held.positive_is_rarer,
    )
    logloss, auc = ({**PARAMETERS, "eval_metric": metric} for metric in ("logloss", "auc"))
    update, here = _timed(logloss, matrix, [share], _evaluation(logloss, held, _alone), rounds)
    ways = {
        "here": here,
        "by hand": _timed(logloss, matrix, [share], _by_xgboost(share), rounds)[1],
        "here, AUC": _timed(auc, matrix, [share], _evaluation(auc, of_all, _from_all), rounds)[1],
        "whole": _timed(auc, matrix, [whole], _by_xgboost(whole), rounds)[1],
    }
    return Evaluating(
        rows=len(mine.labels) * shares, evaluated=len(everyones.labels), shares=shares, update=update, seconds=ways
    )


def _timed(
    parameters: Mapping[str, Any], train: Any, others: list[Any], evaluate: Callable[[Any, int], object], rounds: int
) -> tuple[float, float]:
    """Median seconds of a round's update and of its evaluation."""
    import xgboost

    booster = xgboost.Booster(dict(parameters), [train, *others])
    updates, evaluations = [], []
    for iteration in range(WARM_UP + rounds):
        began = time.perf_counter()
        booster.update(train, iteration)
        updated = time.perf_counter()
        evaluate(booster, iteration)
        updates.append(updated - began)
        evaluations.append(time.perf_counter() - updated)
    return statistics.median(updates[WARM_UP:]), statistics.median(evaluations[WARM_UP:])


def _evaluation(parameters: Mapping[str, Any], share: Share, add: Callable[[NDArray[Any]], NDArray[Any]]) -> Evaluation:
    return Evaluation(parameters, {"validation": share}, dict, add)


def _by_xgboost(matrix: Any) -> Callable[[Any, int], object]:
    return lambda booster, iteration: booster.eval_set([(matrix, "validation")], iteration)


def _alone(array: NDArray[Any]) -> NDArray[Any]:
    return array


def _from_all(array: NDArray[Any]) -> NDArray[Any]:
    """What all workers hand in, where each has the first one's scores."""
    return np.resize(array[: np.flatnonzero(array)[-1] + 1], len(array)) if array.dtype == np.float32 else array


def _rows(table: Table, rows: slice) -> Table:
    return Table(
        features=np.ascontiguousarray(table.features[rows]),
        labels=np.ascontiguousarray(table.labels[rows]),
        feature_names=table.feature_names,
    )
