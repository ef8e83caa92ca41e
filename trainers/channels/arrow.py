"""Rows of a rank out of Arrow's tables and record batches, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.rows import (
    QID,
    WEIGHT,
    Coding,
    Preparation,
    Queries,
    Roles,
    as_said,
    check_said,
    column_numbers,
    unseen,
)
from trainers.channels.table import Table, check_rows


def arrow_rows(
    block: Any,
    columns: tuple[str, ...] | None,
    roles: Roles,
    *,
    seen: int,
    rank: int,
    world_size: int,
    number: Callable[[int], int] | None = None,
    queries: Queries | None = None,
    turns: Sequence[int] = (),
    coding: Coding | None = None,
    preparation: Preparation | None = None,
) -> Table:
    """The rows of one rank in an Arrow table or record batch that `seen` rows lie before; of categories, their codes.

    Errors give a row the `number` of its place in the block; by default, among all rows. Of `queries`, a rank has whole
    ones. Rows go to ranks in `turns`; by default, to one after the other. `preparation` says how cells become numbers.

    Raises:
        DataError: a label is missing or of no class, a number infinite, what is said of a row wrong, or a category not
            of `coding`; naming the row.
    """
    number = number or (lambda place: seen + place + 1)
    mine: Any = slice((rank - seen) % world_size, None, world_size)
    if turns:
        mine = np.flatnonzero(np.resize(np.roll(turns, -(seen % len(turns))), block.num_rows) == rank)
    said: dict[str, NDArray[Any]] = {}
    if queries is not None:
        by_role = dict(roles.said)
        weights = as_said([column_numbers(block.column(by_role[WEIGHT][0]))]) if WEIGHT in by_role else None
        numbered = queries.numbers(column_numbers(block.column(by_role[QID][0])), number, weights)
        mine = np.flatnonzero(numbered % world_size == rank)
        said[QID] = numbered[mine]
    places, coding, prepare = roles.features(block.num_columns), coding or {}, preparation or Preparation()

    def codes(at: int, column: Any) -> NDArray[np.float32]:
        name = columns[places[at]] if columns else str(at)
        return coding[at].codes(column, lambda place: unseen(name, column[place].as_py(), number(place)))

    with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
        labels = prepare.labels(block.column(roles.target), number)[mine].astype(np.float32)
        features = np.empty((len(labels), len(places)), np.float32)
        for at, place in enumerate(places):
            column = block.column(place)
            numbers = codes(at, column) if at in coding else prepare.without_sentinel(column_numbers(column))
            features[:, at] = numbers[mine]
        for role, of_role in roles.said:
            if role != QID:
                said[role] = as_said([column_numbers(block.column(place))[mine] for place in of_role])

    def row(at: int) -> int:
        return number(int(np.arange(block.num_rows)[mine][at]))

    check_said(said, row)
    names = roles.feature_names(columns)
    check_rows(features, labels, names, row)
    return Table(features=features, labels=labels, feature_names=names, said=said)
