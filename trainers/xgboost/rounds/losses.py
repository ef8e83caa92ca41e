"""Metrics that are means over rows: the loss of a row, and sums that do not depend on the sharding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Losses = Any
"""An array of one number a row, in what precision a metric has."""

_LEAST_EXPONENT = -148
_BITS = 24
SLOTS = 128 - _LEAST_EXPONENT + 2
"""Of a sum: one for each exponent that a float32 may have, and a last one for what is not finite."""

PARTS = 2 * SLOTS
"""Of a weighted mean."""
_ONE = 1 - _LEAST_EXPONENT
"""The slot of 1, half of 2 to the first."""

_TINY = 1e-16
_SMALL = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A metric that is made of a sum over rows.

    Args:
        of_rows: losses of rows, out of their labels and what is predicted of them, margins where `of_margins`.
        finish: makes the metric of the mean loss.
        of_margins: it takes margins, one a class.
    """

    of_rows: Callable[[Floats, Floats], Losses]
    finish: Callable[[float], float] = float
    of_margins: bool = False

    def summed(self, labels: Floats, predictions: Floats, weights: Floats | None = None) -> NDArray[np.float64]:
        """The losses of some rows and their weights, `PARTS` numbers to be added to those of others.

        Args:
            labels: of the rows.
            predictions: of the rows.
            weights: of the rows; None: each counts as one.
        """
        with np.errstate(all="ignore"):  # What is not finite is counted as such.
            losses = np.asarray(self.of_rows(labels, predictions), np.float32)
            if weights is None:
                whole = np.zeros(SLOTS)
                whole[_ONE] = losses.size * 2.0 ** (_BITS - 1)
                return np.append(slots_of(losses.ravel()), whole)
            losses = losses * (weights if losses.ndim == 1 else weights[:, None])
        each = losses.size // len(weights)
        return np.append(slots_of(losses.ravel()), each * slots_of(weights))

    def value(self, summed: NDArray[np.float64]) -> float:
        """The metric, out of what `summed` gave of all rows."""
        losses, weights = total_of(summed[:SLOTS]), total_of(summed[SLOTS:])
        return self.finish(losses / weights if weights else losses)


def loss_of(metric: str, hyperparameters: Mapping[str, Any]) -> Loss | None:
    """The loss behind a metric of XGBoost's; None where it is no mean over rows, or XGBoost alone knows what it is.

    Args:
        metric: as in `eval_metric`.
        hyperparameters: XGBoost's own.
    """
    objective = str(hyperparameters.get("objective") or "")
    if objective == "survival:aft":  # XGBoost compares labels with logarithms of what it predicts.
        return None
    name, _, argument = metric.partition("@")
    if not objective.startswith("multi:") and int(hyperparameters.get("num_class") or 0) > 1:
        return None  # With an objective of the user's own, a row has a margin a class.
    if objective.startswith("multi:"):
        return None if argument else _OF_CLASSES.get(name)
    if objective == "reg:quantileerror":
        alphas = quantiles_of(hyperparameters)
        return Loss(of_rows=partial(_quantile, alphas=alphas)) if metric == "quantile" and len(alphas) else None
    try:
        if name == "error":
            return Loss(of_rows=partial(_error, threshold=float(argument or 0.5)))
        if name == "tweedie-nloglik":
            return Loss(of_rows=partial(_tweedie, rho=float(argument)))
    except ValueError:
        return None
    if metric == "mphe":
        slope = hyperparameters.get("huber_slope")
        return Loss(of_rows=partial(_pseudo_huber, slope=1.0 if slope is None else float(slope)))
    return _OF_ROWS.get(metric)


def quantiles_of(hyperparameters: Mapping[str, Any]) -> Floats:
    """The quantiles that "reg:quantileerror" predicts."""
    return np.atleast_1d(np.asarray(_numbers(hyperparameters.get("quantile_alpha")), np.float32))


def single_output(hyperparameters: Mapping[str, Any]) -> bool:
    """Whether a row has one prediction."""
    objective = str(hyperparameters.get("objective") or "")
    classes = int(hyperparameters.get("num_class") or 0)
    return not objective.startswith("multi:") and objective != "reg:quantileerror" and classes < 2


# ---- sums


def slots_of(values: Floats) -> NDArray[np.float64]:
    """A sum of float32 numbers as `SLOTS` whole numbers, exactly: sums of parts add up to that of the whole.

    Each but the last is the sum of the significands of those with one exponent. They are exact as long as there are
    fewer than 2**29 numbers.
    """
    finite = np.isfinite(values)
    known = values if finite.all() else values[finite]
    significands, exponents = np.frexp(known)
    weights = significands.astype(np.float64) * 2.0**_BITS
    slots = np.asarray(np.bincount(exponents - _LEAST_EXPONENT, weights, minlength=SLOTS), np.float64)
    if len(known) < len(values):
        slots[-1] = values[~finite].sum(dtype=np.float64)
    return slots


def total_of(slots: NDArray[np.float64]) -> float:
    """The sum itself, rounded once."""
    if slots[-1] != 0:
        return float(slots[-1])
    (filled,) = np.nonzero(slots)
    return math.fsum(math.ldexp(slots[place], int(place) + _LEAST_EXPONENT - _BITS) for place in filled)


# ---- losses of rows, in float32 where XGBoost's are not rounded by a library's functions


def _squared(labels: Floats, predictions: Floats) -> Losses:
    difference = labels - predictions
    return difference * difference


def _squared_log(labels: Floats, predictions: Floats) -> Losses:
    difference = np.log1p(labels.astype(np.float64)) - np.log1p(predictions.astype(np.float64))
    return difference * difference


def _absolute(labels: Floats, predictions: Floats) -> Losses:
    return np.abs(labels - predictions)


def _absolute_share(labels: Floats, predictions: Floats) -> Losses:
    return np.abs((labels - predictions) / labels)


def _log(labels: Floats, predictions: Floats) -> Losses:
    rest = np.float32(1) - predictions
    if ((labels == 0) | (labels == 1)).all():  # 0 and 1: half of the logarithms would be multiplied by 0.
        return -_ln(np.where(labels, predictions, rest), _TINY)
    return -(labels * _ln(predictions, _TINY) + (np.float32(1) - labels) * _ln(rest, _TINY))


def _error(labels: Floats, predictions: Floats, *, threshold: float) -> Losses:
    return np.where(predictions > np.float32(threshold), np.float32(1) - labels, labels)


def _pseudo_huber(labels: Floats, predictions: Floats, *, slope: float) -> Losses:
    difference = labels.astype(np.float64) - predictions
    return slope * slope * (np.sqrt(1 + (difference / slope) ** 2) - 1)


def _poisson(labels: Floats, predictions: Floats) -> Losses:
    from scipy.special import gammaln

    raised = np.maximum(predictions, np.float32(_TINY)).astype(np.float64)
    return gammaln(labels.astype(np.float64) + 1) + raised - np.log(raised) * labels


def _gamma(labels: Floats, predictions: Floats) -> Losses:
    raised = np.maximum(predictions.astype(np.float64), _SMALL)
    return labels / raised + np.log(raised)


def _gamma_deviance(labels: Floats, predictions: Floats) -> Losses:
    given, predicted = labels.astype(np.float64) + _SMALL, predictions.astype(np.float64) + _SMALL
    return np.log(predicted / given) + given / predicted - 1


def _tweedie(labels: Floats, predictions: Floats, *, rho: float) -> Losses:
    logs = np.log(predictions.astype(np.float64))
    return np.exp((2 - rho) * logs) / (2 - rho) - labels * np.exp((1 - rho) * logs) / (1 - rho)


def _quantile(labels: Floats, predictions: Floats, *, alphas: Floats) -> Losses:
    difference = labels[:, None] - predictions.reshape(len(labels), len(alphas))
    return np.where(difference >= 0, alphas * difference, (alphas - np.float32(1)) * difference)


def _misclassified(labels: Floats, margins: Floats) -> Losses:
    return margins.argmax(axis=1) != labels


def _log_of_class(labels: Floats, margins: Floats) -> Losses:
    shifted = (margins - margins.max(axis=1, keepdims=True)).astype(np.float64)
    logs = shifted[np.arange(len(labels)), labels.astype(np.int64)] - np.log(np.exp(shifted).sum(axis=1))
    return np.minimum(-logs, -math.log(_TINY))


def _ln(values: Floats, least: float) -> Losses:
    return np.log(np.maximum(values, np.float32(least)).astype(np.float64))


def _numbers(given: Any) -> Any:
    """A parameter of one number or several, as text too."""
    if isinstance(given, str):
        return [float(part) for part in given.strip("[]() ").split(",") if part.strip()]
    return [] if given is None else given


_OF_ROWS = {
    "rmse": Loss(of_rows=_squared, finish=math.sqrt),
    "rmsle": Loss(of_rows=_squared_log, finish=math.sqrt),
    "mae": Loss(of_rows=_absolute),
    "mape": Loss(of_rows=_absolute_share),
    "logloss": Loss(of_rows=_log),
    "poisson-nloglik": Loss(of_rows=_poisson),
    "gamma-nloglik": Loss(of_rows=_gamma),
    "gamma-deviance": Loss(of_rows=_gamma_deviance, finish=lambda mean: 2 * mean),
}

_OF_CLASSES = {
    "merror": Loss(of_rows=_misclassified, of_margins=True),
    "mlogloss": Loss(of_rows=_log_of_class, of_margins=True),
}
