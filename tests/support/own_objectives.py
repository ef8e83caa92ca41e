"""Objectives and metrics of a user's own, as XGBoost's documentation writes them; and wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np


def squared_log(predt: Any, dtrain: Any) -> tuple[Any, Any]:
    """Squared logarithmic error, weighted."""
    y = dtrain.get_label()
    predt = np.maximum(predt, -1 + 1e-6)
    weight = dtrain.get_weight() if len(dtrain.get_weight()) else np.ones_like(y)
    grad = (np.log1p(predt) - np.log1p(y)) / (predt + 1)
    hess = (-np.log1p(predt) + np.log1p(y) + 1) / np.power(predt + 1, 2)
    return weight * grad, weight * np.maximum(hess, 1e-6)


def rmsle(predt: Any, dtrain: Any) -> tuple[str, float]:
    """Its root."""
    y = dtrain.get_label()
    return "PyRMSLE", float(np.sqrt(np.mean((np.log1p(y) - np.log1p(np.maximum(predt, -1 + 1e-6))) ** 2)))


def rows(predt: Any, dtrain: Any) -> tuple[str, np.float32]:
    """How many rows there are."""
    return "rows", np.float32(dtrain.num_row())


def softmax(predt: Any, dtrain: Any) -> tuple[Any, Any]:
    """Of three classes."""
    y = dtrain.get_label().astype(int)
    raised = np.exp(predt - predt.max(axis=1, keepdims=True))
    chances = raised / raised.sum(axis=1, keepdims=True)
    return chances - np.eye(3)[y], np.maximum(2 * chances * (1 - chances), 1e-6)


def misclassified(predt: Any, dtrain: Any) -> tuple[str, float]:
    """Of three classes."""
    return "PyMError", float(np.mean(predt.argmax(axis=1) != dtrain.get_label()))


def raises(predt: Any, dtrain: Any) -> Any:
    """Never what it should be."""
    raise KeyError("weight of the moon")


def exits(predt: Any, dtrain: Any) -> Any:
    """Would end the worker."""
    raise SystemExit(3)


def raises_elsewhere(predt: Any, dtrain: Any) -> Any:
    """On one worker of three alone, which has the row that is labelled with 77."""
    if (dtrain.get_label() == 77).any():
        raise ValueError("a label of 77")
    return squared_log(predt, dtrain)


def nan(predt: Any, dtrain: Any) -> Any:
    """One gradient is none."""
    grad = np.zeros_like(predt)
    grad[3] = np.nan
    return grad, np.ones_like(predt)


def short(predt: Any, dtrain: Any) -> Any:
    """A row is missing."""
    return np.zeros(len(predt) - 1), np.ones(len(predt))


def one(predt: Any, dtrain: Any) -> Any:
    """Gradients alone."""
    return np.zeros(len(predt))


def words(predt: Any, dtrain: Any) -> Any:
    """No numbers."""
    return ["a"] * len(predt), np.ones(len(predt))


def nameless(predt: Any, dtrain: Any) -> Any:
    """A metric without a name."""
    return 0.5


def wordy(predt: Any, dtrain: Any) -> Any:
    """A metric that is no number."""
    return "wordy", "much"


class _Guarded:
    """As a tensor of PyTorch's that needs a gradient."""

    def __array__(self, *of: Any, **more: Any) -> Any:
        raise RuntimeError("use detach()")


def guarded_elsewhere(predt: Any, dtrain: Any) -> Any:
    """Returns what is no array where a label is 77."""
    return (_Guarded(), _Guarded()) if (dtrain.get_label() == 77).any() else squared_log(predt, dtrain)


class _NoNumber:
    """As a tensor on a device that is not this one, without a text."""

    def __float__(self) -> float:
        raise RuntimeError("use cpu()")

    def __repr__(self) -> str:
        raise RuntimeError("use cpu()")


def guarded_number(predt: Any, dtrain: Any) -> Any:
    """A metric that says of itself that it is no number."""
    return "guarded", _NoNumber()


def digits(predt: Any, dtrain: Any) -> Any:
    """A text that looks like a number."""
    return "digits", "0.5"


def unreal(predt: Any, dtrain: Any) -> Any:
    """A number with an imaginary part."""
    return "unreal", np.complex64(1 + 1j)


def nul(predt: Any, dtrain: Any) -> Any:
    """A name that no database takes."""
    return "a\0b", 0.5


class _PanicError(BaseException):
    """As libraries in Rust have it."""


def panics(predt: Any, dtrain: Any) -> Any:
    """Raises what is no `Exception`."""
    raise _PanicError("index out of bounds")


def unreal_gradients(predt: Any, dtrain: Any) -> Any:
    """Gradients with imaginary parts."""
    return predt + 1j, np.ones_like(predt)


def texts_of_digits(predt: Any, dtrain: Any) -> Any:
    """Gradients as texts."""
    return predt.astype(str), np.ones_like(predt)


def beyond(predt: Any, dtrain: Any) -> Any:
    """Gradients that float64 holds alone."""
    return np.full(len(predt), 1e300), np.ones_like(predt)


class _Silent(Exception):  # noqa: N818  # it is what goes wrong here
    def __str__(self) -> str:
        raise RuntimeError("no text")


def silent_elsewhere(predt: Any, dtrain: Any) -> Any:
    """Raises where a label is 77, without a text."""
    if (dtrain.get_label() == 77).any():
        raise _Silent
    return squared_log(predt, dtrain)


def huge(predt: Any, dtrain: Any) -> Any:
    """A number that no float holds."""
    return "huge", 10**400


def logloss(predt: Any, dtrain: Any) -> tuple[str, float]:
    """Has the name of a metric of XGBoost's."""
    return "logloss", 0.0
