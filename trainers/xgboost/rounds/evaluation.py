"""Metrics of a round from each worker's share of the rows, exact for any number of workers.

Means over rows are summed without rounding (`xgboost_losses`). An AUC of two classes is the pairs that are in order,
counted: the scores of the rarer class go round. What is neither, XGBoost computes, of all rows on every worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import QID, WEIGHT
from trainers.errors import TrialError
from trainers.xgboost.parameters import metric_names
from trainers.xgboost.rounds.losses import PARTS, Floats, Loss, loss_of, single_output
from trainers.xgboost.rounds.own_functions import METRICS, OwnFunctions, Peers

ALONE, NONE = Peers(), OwnFunctions()

Sum = Callable[[NDArray[Any]], NDArray[Any]]
"""Adds up the arrays that all workers hand in; each gets the sum."""

_ALONE = ("ams", "cox-nloglik")
"""Metrics that XGBoost refuses to workers of a collective, which only the thread that joined it is of."""


def sum_over(world_size: int) -> Sum:
    """The sum over workers that have joined XGBoost's collective; of one alone, what it hands in."""
    if world_size == 1:
        return lambda array: array
    from xgboost import collective

    return lambda array: collective.allreduce(array, collective.Op.SUM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One worker's rows of a channel that is evaluated.

    Args:
        matrix: XGBoost's, of these rows.
        labels: theirs.
        weights: theirs; None: each counts as one.
        rarer: which of them are of the class that fewer rows have in all; None where labels are not those of two, or
            rows have weights or queries.
        before: how many such rows the workers of lower ranks hold.
        totals: rows of the rarer class, and of the other, over all workers.
        positive_is_rarer: the rarer class is 1.
    """

    matrix: Any
    labels: Floats
    weights: Floats | None = None
    rarer: NDArray[np.bool_] | None = None
    before: int = 0
    totals: tuple[int, int] = (0, 0)
    positive_is_rarer: bool = False

    @classmethod
    def of(
        cls, matrix: Any, labels: Floats, rank: int, world_size: int, add: Sum, said: Mapping[str, Any] | None = None
    ) -> Share:
        """Agrees with the other workers on what the labels of all are; each calls it.

        `said` is what is said of these rows, as `trainers.channels.Table` has it.
        """
        said = said or {}
        weights = said.get(WEIGHT)
        counts = np.zeros((world_size, 3), np.int64)
        counts[rank] = (labels == 0).sum(), (labels == 1).sum(), len(labels)
        counts = add(counts.ravel()).reshape(world_size, 3)
        negative, positive, rows = (int(count) for count in counts.sum(axis=0))
        if negative + positive < rows or not negative or not positive or WEIGHT in said or QID in said:
            return cls(matrix=matrix, labels=labels, weights=weights)
        column = int(positive <= negative)
        return cls(
            matrix=matrix,
            labels=labels,
            rarer=labels == column,
            before=int(counts[:rank, column].sum()),
            totals=(min(negative, positive), max(negative, positive)),
            positive_is_rarer=bool(column),
        )

    def pairs(self, scores: Floats, add: Sum) -> float:
        """Twice the pairs of a row of class 1 here or elsewhere above one of class 0, equal scores counted half.

        Each worker counts those of its rows of the commoner class.
        """
        assert self.rarer is not None, "pairs are of two classes"
        mine = scores[self.rarer]
        everyones = np.zeros(self.totals[0], np.float32)
        everyones[self.before : self.before + len(mine)] = mine
        everyones = np.sort(add(everyones))
        others = np.sort(scores[~self.rarer])
        if np.isnan(everyones[-1]) or (len(others) and np.isnan(others[-1])):
            return math.nan
        below = np.searchsorted(everyones, others, "left").sum() + np.searchsorted(everyones, others, "right").sum()
        return float(2 * len(everyones) * len(others) - below if self.positive_is_rarer else below)


class Evaluation:
    """The metrics of one configuration, round by round.

    Args:
        hyperparameters: the configuration.
        shares: this worker's rows, by channel.
        whole: all rows of each channel as XGBoost's matrices; called where XGBoost has to compute a metric.
        add: adds up over the workers.
        peers: this worker among those that have joined XGBoost's collective.
        own: metrics of the user's own, which rank 0 computes of all rows.
    """

    def __init__(
        self,
        hyperparameters: Mapping[str, Any],
        shares: Mapping[str, Share],
        whole: Callable[[], Mapping[str, Any]],
        add: Sum,
        *,
        peers: Peers = ALONE,
        own: OwnFunctions = NONE,
    ) -> None:
        given = hyperparameters.get("eval_metric")
        metrics = [given] if isinstance(given, str) else list(given or ())
        losses = {metric: loss_of(metric, hyperparameters) for metric in metrics}
        self._losses: dict[str, Loss] = {metric: loss for metric, loss in losses.items() if loss is not None}
        of_two = all(share.rarer is not None for share in shares.values())
        self._counts_pairs = "auc" in metrics and single_output(hyperparameters) and of_two
        self._left = [
            metric for metric in losses if metric not in self._losses and not (metric == "auc" and self._counts_pairs)
        ]
        self._apart = peers.world_size > 1 and any(metric.partition("@")[0] in _ALONE for metric in self._left)
        self._names = [(metric, metric_names(metric)[0]) for metric in losses]
        self._shares = dict(shares)
        self._own, self._peers = own, peers
        of_xgboost = not metrics or bool(self._left)
        all_rows = dict(whole()) if of_xgboost or own.metrics else {}  # Each worker: XGBoost agrees on columns.
        self._whole = all_rows if of_xgboost else {}
        self._measured = all_rows if own.metrics else {}
        self._add = add
        self.told: dict[str, Any] = {"eval_metric": self._left} if self._left else {}
        """What XGBoost is told of metrics; without any that it computes, none would be its objective's own."""

    @property
    def matrices(self) -> list[Any]:
        """The booster's predictions."""
        whole = self._whole or self._measured
        return [*(share.matrix for share in self._shares.values() if self._names), *whole.values()]

    def __call__(self, booster: Any, iteration: int) -> dict[str, float]:
        """The metrics after a round, as "channel:metric"; every worker calls it, and has the same."""
        found = self._by_xgboost(booster, iteration)
        shared = self._shared(booster) if self._losses or self._counts_pairs else {}
        own = self._own.measured(booster, self._measured, self._peers) if self._own.metrics else {}
        if not self._names:
            return _with_own(found, own)
        reported = {}
        for channel in self._shares:
            for metric, name in self._names:
                key = f"{channel}:{name}"
                reported[key] = shared[channel, metric] if (channel, metric) in shared else found[key]
        return _with_own(reported, own)

    def _shared(self, booster: Any) -> dict[tuple[str, str], float]:
        """The sums over all workers, in one message and one more a channel for pairs."""
        parts = [self._summed(booster, share) for share in self._shares.values()]
        sums = self._add(np.concatenate(parts)) if parts else np.zeros(0)
        values, start = {}, 0
        for channel, share in self._shares.items():
            for metric, loss in self._losses.items():
                values[channel, metric] = loss.value(sums[start : start + PARTS])
                start += PARTS
            if self._counts_pairs:
                values[channel, "auc"] = float(sums[start]) / 2 / math.prod(share.totals)
                start += 1
        return values

    def _summed(self, booster: Any, share: Share) -> NDArray[np.float64]:
        of_margins = any(loss.of_margins for loss in self._losses.values())
        predicted = booster.predict(share.matrix, output_margin=of_margins, validate_features=False)
        sums = [loss.summed(share.labels, predicted, share.weights) for loss in self._losses.values()]
        if self._counts_pairs:
            sums.append(np.array([share.pairs(predicted, self._add)]))
        return np.concatenate(sums)

    def _by_xgboost(self, booster: Any, iteration: int) -> dict[str, float]:
        if not self._whole:
            return {}
        # By number, since XGBoost puts a hyphen between a channel's name and a metric's, and either may hold some.
        channels = list(self._whole)
        evaluated = [(matrix, str(number)) for number, matrix in enumerate(self._whole.values())]
        if not self._apart:
            return _metrics(booster.eval_set(evaluated, iteration), channels)
        with ThreadPoolExecutor(1, "metrics") as apart:
            return _metrics(apart.submit(booster.eval_set, evaluated, iteration).result(), channels)


def _with_own(reported: dict[str, float], own: dict[str, float]) -> dict[str, float]:
    """All metrics of a round.

    Raises:
        TrialError: one of the user's own has a name of XGBoost's.
    """
    if twice := next((name for name in own if name in reported), None):
        raise TrialError(
            f"{METRICS} returned {twice.partition(':')[2]!r}, the name of a metric that XGBoost reports; give it "
            "another"
        )
    return reported | own


def _metrics(line: str, names: Sequence[str]) -> dict[str, float]:
    """XGBoost's line of one round, `[3] 0-auc:0.77` with tabs, as {"validation:auc": 0.77}."""
    metrics = {}
    for part in line.split("\t")[1:]:
        name, _, value = part.rpartition(":")
        number, _, metric = name.partition("-")
        metrics[f"{names[int(number)]}:{metric}"] = float(value)
    return metrics


def classes_of(labels: Floats, most: int, rank: int, world_size: int, add: Sum) -> Floats:
    """Labels among those of all workers: the least, the greatest, and which whole numbers below `most` there are.

    Each worker calls it.
    """
    ends = np.zeros((world_size, 2))
    ends[rank] = labels.min(), labels.max()
    present = np.isin(np.arange(most), labels).astype(np.float64)
    summed = add(np.concatenate([ends.ravel(), present]))
    return np.unique([*summed[: ends.size], *np.flatnonzero(summed[ends.size :])]).astype(np.float32)
