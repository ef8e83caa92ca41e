"""Roles of columns: the target, features, and what else is said of each row, such as its weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.checking import did_you_mean, some_of
from trainers.errors import ConfigurationError, DataError

ROLES = ("weight", "base_margin", "label_lower_bound", "label_upper_bound", "qid")
"""What may be said of a row beside its label, by XGBoost's names."""
WEIGHT, BASE_MARGIN, LOWER, UPPER, QID = ROLES

USUAL_TARGETS = ("target", "label", "labels", "y", "class", "outcome")
"""Usual names of a target, in any case: a table that has exactly one of them needs no `target`."""

_SHOWN_COLUMNS = 8

Said = Mapping[str, NDArray[Any]]
"""One float32 a row by role; of "base_margin" one or several, and of "qid" the query's number, in order from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Places of the columns that are no features, counted from the front.

    Args:
        target: what is to be predicted; None where labels come apart.
        said: by role.
        dropped: columns that are left out.
        order: the features in the order of another table; empty: in the order of the columns.
    """

    target: int | None
    said: tuple[tuple[str, tuple[int, ...]], ...] = ()
    dropped: tuple[int, ...] = ()
    order: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        target: str | int | None,
        given: Mapping[str, Any],
        columns: Sequence[str] | None,
        width: int,
        drop: Sequence[str | int] = (),
    ) -> Roles:
        """Roles of the columns that a user names.

        Args:
            target: by name or position; None is the lower bound of the labels, if one is given, else what
                `chosen_target` says.
            given: a column by role, by name or position; of "base_margin" a list of them, too.
            columns: their names, if they have some.
            width: how many there are.
            drop: columns to leave out, by name or position.

        Raises:
            ConfigurationError: there is no such column, one has two roles, or nothing says which is the target.
        """
        said = []
        for role, of_role in checked_roles(given).items():
            each = of_role if isinstance(of_role, list | tuple) else [of_role]
            if len(each) != 1 and (role != BASE_MARGIN or not each):
                raise ConfigurationError(f"{role}={of_role!r}: give one column")
            said.append((role, tuple(place_of(role, one, columns, width) for one in each)))
        taken = [(at, role) for role, places in said for at in places]
        lower = dict(said).get(LOWER)
        if target is None and lower:
            place = lower[0]
        else:
            place = place_of("target", chosen_target(columns) if target is None else target, columns, width)
            why = "as it has a usual name" if has_names(columns) else "as the first column is without another"
            taken.append((place, f"target, {why}," if target is None else "target"))
        dropped = tuple(sorted({place_of("drop", one, columns, width) for one in drop}))
        taken += [(at, "dropped") for at in dropped]
        for at, times in Counter(at for at, _ in taken).items():
            if times > 1:
                name = repr(columns[at]) if columns else at
                both = " and ".join(role for other, role in taken if other == at)
                raise ConfigurationError(f"column {name} is {both}; give each a column of its own")
        return cls(target=place, said=tuple(said), dropped=dropped)

    @property
    def names(self) -> tuple[str, ...]:
        """The roles that there are beside the target's."""
        return tuple(role for role, _ in self.said)

    def features(self, width: int) -> list[int]:
        """Where the features are among so many columns, in their order."""
        if self.order:
            return list(self.order)
        taken = {self.target, *self.dropped, *(at for _, places in self.said for at in places)}
        return [place for place in range(width) if place not in taken]

    def feature_names(self, columns: Sequence[str] | None) -> tuple[str, ...] | None:
        """The names of the features, where columns have names."""
        return None if columns is None else tuple(columns[place] for place in self.features(len(columns)))

    def described(self, columns: Sequence[str] | None) -> dict[str, Any]:
        """The columns by role, as JSON takes them; by name where they have names."""

        def shown(place: int | None) -> Any:
            return columns[place] if columns and place is not None else place

        said = {role: [shown(at) for at in places] for role, places in self.said}
        return {
            "target": shown(self.target),
            **{role: of[0] if len(of) == 1 else of for role, of in said.items()},
            **({"dropped": [shown(at) for at in self.dropped]} if self.dropped else {}),
            **({"order": [shown(at) for at in self.order]} if self.order else {}),
        }

    def ordered_like(self, columns: Sequence[str], names: Sequence[str]) -> Roles:
        """The same roles with the features of another table, in its order; other features are left out.

        Args:
            columns: names of all columns.
            names: of the other table's features, each one of the columns.
        """
        order = tuple(columns.index(name) for name in names)
        others = {*self.features(len(columns)), *self.dropped} - {*order}
        return replace(self, dropped=tuple(sorted(others)), order=order)


def has_names(columns: Sequence[str] | None) -> bool:
    """Whether columns have names: the numbers that pandas gives columns without names are none."""
    return columns is not None and list(columns) != [str(place) for place in range(len(columns))]


def chosen_target(columns: Sequence[str] | None) -> int:
    """The target of a table for which nobody names one.

    Args:
        columns: names of all columns, if they have some.

    Returns:
        The first column where columns have no names, as SageMaker has it; else the one column that has a usual name.

    Raises:
        ConfigurationError: no column has a usual name, or several have one.
    """
    if columns is None or not has_names(columns):
        return 0
    usual = [at for at, name in enumerate(columns) if name.strip().lower() in USUAL_TARGETS]
    if len(usual) == 1:
        return usual[0]
    shown = some_of([repr(name) for name in columns], _SHOWN_COLUMNS)
    if usual:
        several = " and ".join(repr(columns[at]) for at in usual)
        raise ConfigurationError(
            f"target is missing, and {several} are both usual names of one; give target={columns[usual[0]]!r}, say"
        )
    raise ConfigurationError(
        f"target is missing: nothing says which column to predict, and none has a usual name of a target "
        f"({', '.join(USUAL_TARGETS)}). The columns are {shown}; give target=..., one of these names"
    )


def checked_roles(given: Mapping[str, Any]) -> dict[str, Any]:
    """Roles that are given, without those that are None.

    Raises:
        ConfigurationError: one is unknown, or one bound is there without the other.
    """
    known = {role: of_role for role, of_role in given.items() if of_role is not None}
    for role in known:
        if role not in ROLES:
            raise ConfigurationError(
                f"{role!r} is nothing that is said of rows; give one of {', '.join(ROLES)}{did_you_mean(role, ROLES)}"
            )
    if (LOWER in known) != (UPPER in known):
        one, other = (LOWER, UPPER) if LOWER in known else (UPPER, LOWER)
        raise ConfigurationError(f"{one} is given without {other}; give both, or neither")
    return known


def place_of(role: str, column: str | int, columns: Sequence[str] | None, width: int) -> int:
    """Which column a role's is, counted from the front.

    Raises:
        ConfigurationError: there is none like that.
    """
    if isinstance(column, bool) or not isinstance(column, int | np.integer | str):
        raise ConfigurationError(f"{role}={column!r}: give a column's name, or its position, 0 for the first")
    if not isinstance(column, str):
        if not -width <= column < width:
            raise ConfigurationError(f"{role}={column}: there are {width} columns; give 0 to {width - 1}, or a name")
        return int(column) % width
    if columns is None:
        raise ConfigurationError(f"{role}={column!r}: the columns have no names; give a position, 0 for the first")
    if column not in columns:
        if spaced := next((name for name in columns if name.strip() == column), None):
            raise ConfigurationError(
                f"{role}={column!r} is no column, and {spaced!r} is one, with spaces in its name; take the spaces out "
                f"of the header, or give {role}={spaced!r}"
            )
        hint = did_you_mean(column, columns, cutoff=0.4) or f"; the first are {', '.join(map(repr, columns[:8]))}"
        raise ConfigurationError(f"{role}={column!r} is no column{hint}")
    return columns.index(column)


def as_said(columns: Sequence[Any]) -> NDArray[np.float32]:
    """One number a row out of one column, several out of several."""
    with np.errstate(over="ignore"):  # Too large becomes infinite, and `check_said` refuses that.
        numbers: NDArray[np.float32] = np.asarray(columns, np.float32)
    return np.ascontiguousarray(numbers[0] if len(columns) == 1 else numbers.T)


def check_said(said: Said, row: Callable[[int], int]) -> None:
    """Checks what is said of rows.

    Args:
        said: of some rows, by role.
        row: the number, from 1, that an error gives to a row, of which it is told the place among these.

    Raises:
        DataError: a weight is negative, a number is missing, or bounds are the wrong way round, or those of no time.
    """
    for role, numbers in said.items():
        if role == QID:  # Numbered already; see `Queries`.
            continue
        wrong = ~np.isfinite(numbers) if role in (WEIGHT, BASE_MARGIN) else np.isnan(numbers)
        if role in (WEIGHT, LOWER):
            wrong |= numbers < 0
        if role == LOWER:
            wrong |= np.isinf(numbers)
        if role == UPPER:
            wrong |= numbers <= 0
        if wrong.any():
            at = int(np.argwhere(wrong)[0][0])
            takes = _TAKES.get(role, "a number")
            of_row = np.ravel(numbers[at])
            shown = next((number for number in of_row if not np.isfinite(number)), of_row[0])
            raise DataError(f"row {row(at)}: {role} is {shown:g}; give {takes}, or leave the row out")
    if LOWER in said and (crossed := said[LOWER] > said[UPPER]).any():
        at = int(crossed.argmax())
        raise DataError(
            f"row {row(at)}: {LOWER} is {said[LOWER][at]:g}, above {UPPER}, {said[UPPER][at]:g}; swap them, or leave "
            "the row out"
        )


_TAKES = {
    WEIGHT: "a number of 0 or more",
    LOWER: "a time of 0 or more",
    UPPER: "a time above 0, infinite where nobody knows",
}
"""What is said of a row, in words, where it is more than a number."""
