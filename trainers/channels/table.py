"""The rows of one worker: columns, pieces and checks."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from trainers.channels.rows import (
    QID,
    Problems,
    Said,
    is_date,
    is_number_type,
    may_be_categories,
)
from trainers.channels.sparse import is_sparse, stacked
from trainers.checking import some_of
from trainers.errors import ConfigurationError, DataError

LARGEST = float(np.finfo(np.float32).max)
ENCODE = "encode it as numbers first (pandas.get_dummies, say)"
DROP = "leave the column out with drop=[...]"
NAME_IT = f"name the column in categorical=[...], or {DROP}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The rows that one worker holds; the arrays may be read-only.

    Args:
        features: float32 in C order; a DataFrame where columns of pandas' `category` dtype are among them; of sparse
            rows a CSR matrix, in which absent entries are missing.
        labels: one float32 a row.
        feature_names: names of the features, or None where the source has none.
        said: what else is said of each row, by `rows.ROLES`.
    """

    features: Any
    labels: NDArray[np.float32]
    feature_names: tuple[str, ...] | None
    said: Said = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shards:
    """All rows, in Ray's object store: for each rank the objects that make up its shard, in order."""

    pieces: tuple[tuple[Any, ...], ...]

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank."""
        import ray

        return join(ray.get(piece) for piece in self.pieces[rank])

    def each(self, rank: int, world_size: int) -> Iterator[Table]:
        """The objects of one rank, one after the other; of all ranks for a world of 1."""
        import ray

        ranks = self.pieces if world_size == 1 else (self.pieces[rank],)
        for reference in (piece for pieces in ranks for piece in pieces):
            yield ray.get(reference)

    def rows(self, piece: Any) -> int:
        """How many rows one of the objects holds."""
        import ray

        return len(ray.get(piece).labels)

    def read_whole(self) -> Table:
        """All rows, in their order."""
        world_size = len(self.pieces)
        return interleave([self.read(rank, world_size) for rank in range(world_size)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The columns beside the target: how many, and their names where they have some."""

    names: tuple[str, ...] | None
    count: int

    def check_like(self, other: Heading, channel: str) -> None:
        """Raises where they are not the columns of another channel, the one that is called `channel`."""
        if self == other:
            return
        if self.names is not None and other.names is not None:
            raise DataError(
                f"{_difference(self.names, other.names, channel)}: give both the same columns, in one order"
            )
        if self.count != other.count:
            raise DataError(
                f"there are {self.count} columns beside the target, and {other.count} in channel {channel!r}: "
                "give both the same columns, in one order"
            )
        mine, theirs = ("no names", "names") if self.names is None else ("names", "no names")
        raise DataError(f"columns have {mine}, and {theirs} in channel {channel!r}: give both the same, or neither any")


def _difference(mine: tuple[str, ...], theirs: tuple[str, ...], channel: str) -> str:
    lacking = [name for name in theirs if name not in mine]
    besides = [name for name in mine if name not in theirs]
    if not lacking and not besides:
        first = next(place for place, (one, other) in enumerate(zip(mine, theirs, strict=True)) if one != other)
        return f"columns are in another order than in channel {channel!r}: {mine[first]!r} for {theirs[first]!r}"
    lacks = f"lack {some_of(list(map(repr, lacking)))}" if lacking else ""
    has = (
        f"have {some_of(list(map(repr, besides)))}, which channel {channel!r} has not"
        if besides
        else f"of channel {channel!r}"
    )
    return f"columns {lacks}{' and ' if lacking and besides else ' ' if lacking else ''}{has}"


# ---- pieces


def join(pieces: Iterable[Table]) -> Table:
    """One shard out of its pieces, in order, which were checked."""
    queue = deque(pieces)
    rows = sum(len(piece.labels) for piece in queue)
    check_filled(rows, queue[0].said if queue else {})
    if len(queue) == 1:
        return queue[0]
    names = queue[0].feature_names
    said = {role: np.concatenate([piece.said[role] for piece in queue]) for role in queue[0].said}
    if is_sparse(queue[0].features):
        return Table(
            features=stacked([piece.features for piece in queue]),
            labels=np.concatenate([piece.labels for piece in queue]),
            feature_names=names,
            said=said,
        )
    features = np.empty((rows, queue[0].features.shape[1]), np.float32)
    labels = np.empty(rows, np.float32)
    start = 0
    while queue:
        # Each piece is let go once copied, so that the shard is not held twice.
        piece = queue.popleft()
        end = start + len(piece.labels)
        features[start:end], labels[start:end] = piece.features, piece.labels
        start = end
    return Table(features=features, labels=labels, feature_names=names, said=said)


def interleave(shards: Sequence[Table]) -> Table:
    """The rows of several ranks in the order that they were dealt out from; one shard behind the other, if unlike that.

    Args:
        shards: of ranks, in order: of all of them, or of every so many.
    """
    if len(shards) == 1:
        return shards[0]
    if QID in shards[0].said:
        return _in_order_of_queries(shards)
    lengths = [len(shard.labels) for shard in shards]
    if lengths != sorted(lengths, reverse=True) or lengths[-1] < lengths[0] - 1:
        return join(shards)
    features = [shard.features for shard in shards]
    together = _interleave_arrays if isinstance(features[0], np.ndarray) else _interleave_others
    return Table(
        features=together(features),
        labels=_interleave_arrays([shard.labels for shard in shards]),
        feature_names=shards[0].feature_names,
        said={role: _interleave_arrays([shard.said[role] for shard in shards]) for role in shards[0].said},
    )


def _in_order_of_queries(shards: Sequence[Table]) -> Table:
    order = np.argsort(np.concatenate([shard.said[QID] for shard in shards]), kind="stable")
    features = [shard.features for shard in shards]
    if isinstance(features[0], np.ndarray):
        whole: Any = np.concatenate(features)[order]
    elif is_sparse(features[0]):
        whole = stacked(features)[order]
    else:
        import pandas as pd

        whole = pd.concat(features).iloc[order].reset_index(drop=True)
    return Table(
        features=whole,
        labels=np.concatenate([shard.labels for shard in shards])[order],
        feature_names=shards[0].feature_names,
        said={role: np.concatenate([shard.said[role] for shard in shards])[order] for role in shards[0].said},
    )


def _interleave_arrays(arrays: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    whole = np.empty((sum(map(len, arrays)), *arrays[0].shape[1:]), np.float32)
    for rank, array in enumerate(arrays):
        whole[rank :: len(arrays)] = array
    return whole


def _interleave_others(frames: Sequence[Any]) -> Any:
    """Of frames, or of CSR matrices."""
    step = len(frames)
    if is_sparse(frames[0]):
        places = np.concatenate([np.arange(frame.shape[0]) * step + rank for rank, frame in enumerate(frames)])
        return stacked(frames)[np.argsort(places)]
    import pandas as pd

    placed = [frame.set_axis(range(rank, rank + len(frame) * step, step)) for rank, frame in enumerate(frames)]
    return pd.concat(placed).sort_index()


# ---- columns


def unique_names(columns: Iterable[Any]) -> tuple[str, ...]:
    """Names of columns as text, each of which has to be its own."""
    names = tuple(map(str, columns))
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"more than one column is named {twice[0]!r}: give each its own name")
    return names


def without_index(schema: Any) -> Any:
    """An Arrow schema without the row labels that pandas stores beside the columns: they would be learnt from."""
    for name in schema.names:
        if re.fullmatch(r"__index_level_\d+__", name):
            schema = schema.remove(schema.get_field_index(name))
    return schema


# ---- checks


def check_shard(rows: int | None, rank: int, world_size: int) -> None:
    """Raises where there is no such rank, or not a row for each."""
    if world_size < 1:
        raise ConfigurationError(f"{world_size} workers: give at least 1")
    if not 0 <= rank < world_size:
        raise ConfigurationError(f"rank {rank} of {world_size} workers: give 0 to {world_size - 1}")
    if rows is not None and rows < world_size:
        raise DataError(f"{rows} rows for {world_size} workers: each needs at least one; use fewer workers")


def check_filled(rows: int, said: Said) -> None:
    """Raises where a rank has no rows; what is said of rows tells whether they are dealt out by query."""
    if rows == 0:
        few = "queries" if QID in said else "rows"
        raise DataError(f"this worker has no rows, since there are fewer {few} than workers: use fewer workers")


def check_schema(schema: Any, categorical: Collection[str] = (), *, dates: bool = False) -> None:
    """Raises where columns of an Arrow schema hold no numbers, and names all of them.

    Args:
        schema: of all columns that are read as numbers or categories.
        categorical: names of those that hold categories.
        dates: whether dates become numbers.
    """
    problems = Problems()
    for column in schema:
        with problems.gathered():
            if column.name in categorical:
                if not may_be_categories(column.type):
                    raise DataError(
                        f"column {column.name!r} holds {column.type} values, and categories are text or whole numbers; "
                        f"write it as such, or leave it out of categorical"
                    )
            elif not is_number_type(column.type) and not (dates and is_date(column.type)):
                raise DataError(f"column {column.name!r} holds {column.type} values, no numbers; {ENCODE}, or {DROP}")
    problems.check()


def count_unlabelled(labels: NDArray[np.float32]) -> int:
    """How many labels are missing or infinite."""
    return int((~np.isfinite(labels)).sum())


def check_labels(unlabelled: int) -> None:
    """Raises where labels are missing or infinite."""
    if unlabelled:
        many = "label is" if unlabelled == 1 else "labels are"
        raise DataError(f"{unlabelled} {many} missing (NaN) or infinite: drop these rows, or fill them in")


def check_rows(
    features: Any, labels: NDArray[np.float32], names: Sequence[str] | None, row: Callable[[int], int]
) -> None:
    """Raises where a label is missing or a number infinite, and says in which row, by its place among these."""
    if count_unlabelled(labels):
        at = int((~np.isfinite(labels)).argmax())
        raise DataError(f"row {row(at)}: the label is {labels[at]:g}: drop such rows, or fill them in")
    try:
        check_finite(features, names)
    except DataError as error:
        at = int((np.abs(features) > LARGEST).any(axis=1).argmax())
        raise DataError(f"row {row(at)}: {error}") from None


def check_finite(features: Any, names: Sequence[str] | None) -> None:
    """Raises where a feature is infinite, or too large for the float32 that XGBoost computes with; NaN is missing."""
    if is_sparse(features):
        _check_entries(features, names)
    if not isinstance(features, np.ndarray):
        return  # A frame, which was checked where it was opened.
    # Two passes without another array of that size.
    with np.errstate(invalid="ignore"):
        bounds = np.fmin.reduce(features, axis=None, initial=0), np.fmax.reduce(features, axis=None, initial=0)
    if max(-float(bounds[0]), float(bounds[1])) <= LARGEST:
        return
    if features.ndim == 1:
        features = features[:, None]
    rows, places = np.nonzero(np.abs(features) > LARGEST)
    _refuse_large(int(places[0]), float(features[rows[0], places[0]]), names)


def _check_entries(features: Any, names: Sequence[str] | None) -> None:
    wrong = np.abs(features.data) > LARGEST
    if wrong.any():
        at = int(wrong.argmax())
        _refuse_large(int(features.indices[at]), float(features.data[at]), names)


def _refuse_large(place: int, number: float, names: Sequence[str] | None) -> NoReturn:
    column = repr(names[place]) if names else f"{place} beside the target"
    raise DataError(
        f"column {column} holds {number:g}; infinite values, and those too large for float32, "
        "cannot be trained on: cut such values off, or make them missing (NaN)"
    )
