"""Cost of evaluation where many workers each evaluate a share: one of them, simulated."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
    """Processor seconds of a round on one of `shares` workers, one thread each, without what others make it wait.

    Args:
        rows: that all train on.
        evaluated: that all evaluate on.
        shares: how many workers there are.
        update: median seconds of training a round on a share.
        seconds: median seconds of evaluating it by way: "here" and "by hand" are logloss of a share, "prediction" is
            XGBoost's part of either and "one split" the same where the new tree has one split, "here, AUC" counts the
            pairs of a share and all rows of the rarer class, and "whole" is XGBoost's AUC of all rows.
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
    """Trains one worker's share, and evaluates a share of a fifth as many rows in each way, all ways in every round."""
    import xgboost

    train = Channel.of(load(name, data_dir=data_dir, repeat=repeat).train)
    mine = train.read(0, shares)
    everyones = train.read(0, round(1 / OF_TRAIN))
    part = _rows(everyones, slice(0, None, shares))
    matrix = xgboost.QuantileDMatrix(mine.features, mine.labels, nthread=1)

    def share() -> Any:
        """A matrix of its own for each way, since XGBoost keeps what it predicted of one."""
        return xgboost.DMatrix(part.features, part.labels, nthread=1)

    whole = xgboost.QuantileDMatrix(everyones.features, everyones.labels, nthread=1, ref=matrix)
    held = Share.of(share(), part.labels, 0, 1, _alone)
    of_all = replace(held, matrix=share(), totals=(shares * held.totals[0], shares * held.totals[1]))
    logloss, auc = ({**PARAMETERS, "eval_metric": metric} for metric in ("logloss", "auc"))
    by_hand, predicted, split = share(), share(), share()
    updates, seconds = _timed(
        matrix,
        [
            (
                logloss,
                {
                    "here": (held.matrix, _evaluation(logloss, held, _alone)),
                    "by hand": (by_hand, _by_xgboost(by_hand)),
                    "prediction": (predicted, _prediction(predicted)),
                },
            ),
            (
                auc,
                {
                    "here, AUC": (of_all.matrix, _evaluation(auc, of_all, _from_all)),
                    "whole": (whole, _by_xgboost(whole)),
                },
            ),
            ({**PARAMETERS, "max_depth": 1}, {"one split": (split, _prediction(split))}),
        ],
        rounds,
    )
    return Evaluating(
        rows=len(mine.labels) * shares,
        evaluated=len(everyones.labels),
        shares=shares,
        update=updates,
        seconds=seconds,
    )


Ways = Mapping[str, tuple[Any, Callable[[Any, int], object]]]
"""By name: the matrix that a way predicts, and what it does with a booster after a round."""


def _timed(train: Any, boosters: list[tuple[Mapping[str, Any], Ways]], rounds: int) -> tuple[float, dict[str, float]]:
    """Median processor seconds of a round's update, the first booster's, and of each way to evaluate one of theirs."""
    import xgboost

    trained = [
        (xgboost.Booster(dict(parameters), [train, *(matrix for matrix, _ in ways.values())]), ways)
        for parameters, ways in boosters
    ]
    updates: list[list[float]] = [[] for _ in trained]
    seconds: dict[str, list[float]] = defaultdict(list)
    for iteration in range(WARM_UP + rounds):
        for (booster, ways), took in zip(trained, updates, strict=True):
            took.append(_seconds(booster.update, train, iteration))
            for way in sorted(ways, reverse=bool(iteration % 2)):
                seconds[way].append(_seconds(ways[way][1], booster, iteration))
    medians = {way: statistics.median(seconds[way][WARM_UP:]) for _, ways in boosters for way in ways}
    return statistics.median(updates[0][WARM_UP:]), medians


def _seconds(work: Callable[..., object], *arguments: Any) -> float:
    """Of this thread, which does all of it: of a busy machine's wall seconds most would be other programs'."""
    began = time.thread_time()
    work(*arguments)
    return time.thread_time() - began


def _evaluation(parameters: Mapping[str, Any], share: Share, add: Callable[[NDArray[Any]], NDArray[Any]]) -> Evaluation:
    return Evaluation(parameters, {"validation": share}, dict, add)


def _by_xgboost(matrix: Any) -> Callable[[Any, int], object]:
    return lambda booster, iteration: booster.eval_set([(matrix, "validation")], iteration)


def _prediction(matrix: Any) -> Callable[[Any, int], object]:
    return lambda booster, iteration: booster.predict(matrix, validate_features=False)


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
