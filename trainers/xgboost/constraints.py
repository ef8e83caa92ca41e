"""Monotone and interaction constraints: what XGBoost reads of their spellings, against the columns that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

MONOTONE, INTERACTION = "monotone_constraints", "interaction_constraints"
_NUMBERS = re.compile(r"\s*[(\[]\s*([-+]?[01]\s*(,\s*[-+]?[01]\s*)*,?)?\s*[)\]]\s*", re.ASCII)


def text_remedy(name: str, text: str) -> str:
    """The remedy for a constraint that is text; empty where XGBoost reads it."""
    if name == MONOTONE:
        return "" if _NUMBERS.fullmatch(text) else "give 1, 0 or -1 for each column, as in '(1,0,-1)'"
    return "" if _groups(text) is not None else "give lists of columns by place, as in '[[0, 1], [2]]'"


def check_constraints(hyperparameters: Mapping[str, Any], names: Sequence[str] | None, count: int | None) -> None:
    """Refuses constraints of columns that a channel does not have.

    Args:
        hyperparameters: XGBoost's own.
        names: of the columns of features; None where they have none.
        count: how many there are; None where that is not known.

    Raises:
        ConfigurationError: naming the constraint, the column and the nearest that there is.
    """
    monotone, interaction = hyperparameters.get(MONOTONE), hyperparameters.get(INTERACTION)
    if isinstance(monotone, Mapping):
        _check_names(MONOTONE, [*monotone], names)
    elif monotone is not None and count is not None:
        given = len(re.findall(r"[01]", monotone)) if isinstance(monotone, str) else len(monotone)
        if given > count:
            raise ConfigurationError(
                f"hyperparameter {MONOTONE!r} is of {given} columns, and channel 'train' has {count}; give one for each"
            )
    groups = _groups(interaction) if isinstance(interaction, str) else interaction
    for column in (column for group in groups or () for column in group):
        if isinstance(column, str):
            _check_names(INTERACTION, [column], names)
        elif count is not None and column >= count:
            raise ConfigurationError(
                f"hyperparameter {INTERACTION!r} has the column {column}, and channel 'train' has {count}; they count "
                "from 0"
            )


def _check_names(constraint: str, given: Sequence[str], names: Sequence[str] | None) -> None:
    for name in given:
        if names is None:
            raise ConfigurationError(
                f"hyperparameter {constraint!r} names {name!r}, and the columns of channel 'train' have no names; give "
                "their places"
            )
        if name not in names:
            raise ConfigurationError(
                f"hyperparameter {constraint!r} names {name!r}, which is no column of channel 'train'"
                f"{did_you_mean(name, names)}"
            )


def _groups(text: str) -> list[list[int]] | None:
    """The groups of a text; None where XGBoost does not read it."""
    try:
        groups = json.loads(text)
    except ValueError:
        return None
    whole = isinstance(groups, list) and all(
        isinstance(group, list) and all(type(column) is int and column >= 0 for column in group) for group in groups
    )
    return groups if whole else None
