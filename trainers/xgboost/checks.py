"""Checks of hyperparameters that XGBoost would ignore, or refuse only on a worker.

What the tables of `trainers.xgboost.parameters` do not know is tried on the installed XGBoost, so a later release may
know more.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.checking import check_whole, did_you_mean, is_whole, shown
from trainers.errors import ConfigurationError
from trainers.xgboost.constraints import text_remedy
from trainers.xgboost.parameters import (
    ALIASES,
    CHOICES,
    KNOWN,
    MAXIMIZE,
    METRICS,
    NUMBERS,
    OF_TOP,
    PATIENCE,
    REPLACED,
    ROUNDS,
    WITH_NUMBER,
    Number,
)

_NUMERAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_LARGEST = 3.4028235e38
_LARGEST_WHOLE = 2**31 - 1
_WITH_ARGUMENT = {"ams": "ams@0.15", "tweedie-nloglik": "tweedie-nloglik@1.5"}
_NEEDS = {
    "multi:softmax": ("num_class", "the number of classes, 2 or more"),
    "multi:softprob": ("num_class", "the number of classes, 2 or more"),
    "reg:quantileerror": ("quantile_alpha", "a quantile from 0 to 1, or a list of them"),
}


def check_parameters(hyperparameters: Mapping[str, Any]) -> None:
    """Refuses what XGBoost does not know, would ignore, or would refuse once a worker trains.

    Args:
        hyperparameters: XGBoost's own, the rounds under any of `ROUNDS`, and what early stopping takes; None leaves one
            at its default.

    Raises:
        ConfigurationError: naming the hyperparameter, its value and what to give.
    """
    for name in (*ROUNDS, PATIENCE):
        if isinstance(rounds := hyperparameters.get(name), int) and rounds > _LARGEST_WHOLE:
            raise ConfigurationError(f"hyperparameter {name!r} is {shown(rounds)}; give at most {_LARGEST_WHOLE}")
    lengths = {name: value for name in ROUNDS if (value := hyperparameters.get(name)) is not None}
    if len(set(map(repr, lengths.values()))) > 1:
        shown_values = " and ".join(f"{name!r} is {shown(value)}" for name, value in lengths.items())
        raise ConfigurationError(
            f"hyperparameters {shown_values}, which are names of one, the number of rounds; give one of them"
        )
    check_whole(f"hyperparameter {PATIENCE!r}", hyperparameters.get(PATIENCE), 1)
    if not isinstance(maximize := hyperparameters.get(MAXIMIZE), bool | None):
        raise ConfigurationError(f"hyperparameter {MAXIMIZE!r} is {shown(maximize)}; give True or False")
    ours = (*ROUNDS, PATIENCE, MAXIMIZE)
    given = {name: value for name, value in hyperparameters.items() if name not in ours and value is not None}
    first: dict[str, str] = {}
    for name, value in given.items():
        _check_name(name, given)
        own = ALIASES.get(name, name)
        if own in first:
            raise ConfigurationError(
                f"hyperparameters {first[own]!r} and {name!r} are two names of one, and XGBoost would take only one of "
                f"them: leave {name!r} out"
            )
        first[own] = name
        remedy = "give its tolist()" if getattr(value, "ndim", 0) else _remedy(own, name, given)
        if remedy:
            raise ConfigurationError(f"hyperparameter {name!r} is {shown(value)}; {remedy}")
    _check_together(given)


# ---- names


def _check_name(name: Any, given: Mapping[str, Any]) -> None:
    if name in KNOWN:
        return
    if not isinstance(name, str):
        raise ConfigurationError(f"hyperparameters have the name {name!r}; give a string")
    if name in REPLACED:
        raise ConfigurationError(
            f"hyperparameter {name!r} is no longer one of XGBoost's; give {REPLACED[name]!r} instead"
        )
    if _used(name, given):
        return
    hint = did_you_mean(name, [*KNOWN, *ROUNDS]) or "; leave it out"
    raise ConfigurationError(f"hyperparameter {name!r} is none of XGBoost's, which would ignore it{hint}")


def _used(name: str, parameters: Mapping[str, Any]) -> bool:
    """Whether the installed XGBoost takes a parameter among others, and does not warn that it ignores it."""
    import numpy as np
    import xgboost

    matrix = xgboost.DMatrix(np.array([[0.0], [1.0]], np.float32), label=np.array([0.0, 1.0], np.float32))
    asked = {**parameters, "validate_parameters": True, "nthread": 1}
    with warnings.catch_warnings(record=True) as caught, xgboost.config_context(verbosity=1):
        warnings.simplefilter("always")
        try:
            booster = xgboost.Booster({**asked, "verbosity": 1}, [matrix])
            booster.update(matrix, 0)
            booster.eval_set([(matrix, "tried")], 0)
        except (xgboost.core.XGBoostError, TypeError, ValueError):
            return False
    return not any(f'"{name}"' in text and "not used" in text for text in (str(warning.message) for warning in caught))


# ---- values


def _remedy(own: str, name: str, given: Mapping[str, Any]) -> str:
    """The remedy for a parameter, of which `own` is XGBoost's name; empty where it is right."""
    value = given[name]
    if own in NUMBERS:
        return _number_remedy(NUMBERS[own], value)
    if own in CHOICES:
        known = value in CHOICES[own] or (isinstance(value, str) and _used(name, given))
        return "" if known else f"give one of {', '.join(CHOICES[own])}{did_you_mean(value, CHOICES[own])}"
    if own == "eval_metric":
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, Sequence) or not names:
            return "give a metric's name, such as 'auc', or a list of them"
        return next(filter(None, map(_metric_remedy, names)), "")
    if own in _FORMS and isinstance(value, str):
        return text_remedy(own, value)
    if own in _FORMS:
        fits, remedy = _FORMS[own]
        return "" if fits(value) else remedy
    return "" if _plain(value) else "give text, a number, true or false, or a list of them"


def _directions(value: Any) -> bool:
    values = list(value.values()) if isinstance(value, Mapping) else value
    named = not isinstance(value, Mapping) or all(isinstance(name, str) for name in value)
    return named and isinstance(values, list | tuple) and all(_whole(one) and one in (-1, 0, 1) for one in values)


def _groups(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not all(isinstance(group, list | tuple) for group in value):
        return False
    columns = [column for group in value for column in group]
    return all(isinstance(column, str) for column in columns) or all(_whole(at) and at >= 0 for at in columns)


def _whole(value: Any) -> bool:
    return is_whole(value)


_FORMS = {
    "monotone_constraints": (_directions, "give 1, 0 or -1 for each column, as in (1, 0, -1), or by name, {'age': 1}"),
    "interaction_constraints": (_groups, "give lists of columns, by name or all by place, as in [[0, 1], [2]]"),
}
"""What some parameters take where it is no text, and what to give instead of others."""


def _number_remedy(allowed: Number, value: Any) -> str:
    remedy = f"give {allowed}"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return remedy
    if allowed.whole and isinstance(value, float):
        return f"{remedy}, without a decimal point"
    if isinstance(value, str) and not _NUMERAL.fullmatch(value):
        return remedy
    try:
        number = int(value) if allowed.whole else float(value)
    except (ValueError, OverflowError):
        return remedy
    if number in allowed and abs(number) > (_LARGEST_WHOLE if allowed.whole else _LARGEST):
        return f"{remedy}, that 32 bits hold"
    return "" if number in allowed else remedy


def _metric_remedy(metric: Any) -> str:
    base, at, argument = (metric if isinstance(metric, str) else shown(metric)).partition("@")
    base = base.removesuffix("-")
    if base in _WITH_ARGUMENT and not at:
        return f"give its number too, as in {_WITH_ARGUMENT[base]!r}"
    if base in WITH_NUMBER and at and not _NUMERAL.fullmatch(argument):
        return f"give a number behind the @, as in '{base}@0.3'"
    if base in OF_TOP and at and not re.fullmatch(r"[1-9]\d*-?", argument, re.ASCII):
        return f"give how many of a query's first rows count, 1 or more, as in '{base}@5' or '{base}@5-'"
    if base in METRICS and base not in (*WITH_NUMBER, *OF_TOP) and metric != base:
        return f"XGBoost would not read what is behind {base!r}: leave it out"
    if isinstance(metric, str) and (base in METRICS or _used("eval_metric", {"eval_metric": metric})):
        return ""
    return f"give metrics among {', '.join(METRICS)}{did_you_mean(base, METRICS)}"


def _plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value) and all(map(_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _check_together(given: Mapping[str, Any]) -> None:
    objective, classes = given.get("objective", "reg:squarederror"), int(given.get("num_class", 0))
    name, what = _NEEDS.get(objective, ("", ""))
    if name and (name not in given or (name == "num_class" and classes < 2)):
        value = repr(given[name]) if name in given else "not given"
        raise ConfigurationError(f"hyperparameter {name!r} is {value} with objective {objective!r}; give {what}")
    if classes > 1 and objective.startswith("binary:"):
        raise ConfigurationError(
            f"hyperparameter 'num_class' is {classes} with objective {objective!r}; leave it out, or give objective "
            "'multi:softprob'"
        )
