"""`Memory`: rows in the driver's memory, and the shard of each rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import fingerprint
from trainers.channels.fingerprint import Parts
from trainers.channels.memory.categories import coded, coding_of
from trainers.channels.memory.numbers import array_features, frame_features
from trainers.channels.rows import QID, Categories, Coding, Roles, Said, described, unseen_label
from trainers.channels.sparse import is_sparse
from trainers.channels.table import (
    Heading,
    Shards,
    Table,
    check_filled,
)

ALL_FEATURES = Roles(target=None)
"""Of columns whose labels come apart."""


BLOCK_ROWS = 1 << 16
"""Rows of a piece, where a shard comes in pieces."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """An array, a DataFrame or a CSR matrix, with columns of other roles among the features, or without any.

    Args:
        features: with those columns.
        labels: one a row.
        columns: names of the columns, where they have some.
        roles: where the columns are that are no features.
        said: see `Table`.
        preparation: how features and labels became numbers, as `Preparation.described` has it.
    """

    features: Any
    labels: NDArray[np.float32]
    columns: tuple[str, ...] | None
    roles: Roles = ALL_FEATURES
    said: Said = field(default_factory=dict)
    preparation: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_table(cls, table: Table, preparation: Mapping[str, Any]) -> Memory:
        """The rows of a table that was prepared."""
        return cls(
            features=table.features,
            labels=table.labels,
            columns=table.feature_names,
            said=table.said,
            preparation=preparation,
        )

    def ordered_like(self, names: Sequence[str]) -> Memory:
        """The same rows with the features of another table, in its order; see `Roles.ordered_like`."""
        return replace(self, roles=self.roles.ordered_like(self.columns or (), names))

    def classed(self, classes: Categories) -> Memory:
        """The same rows whose text labels have the classes of others.

        Raises:
            DataError: a label is none of these.
        """
        own = Categories(values=tuple(self.preparation["classes"]))
        number = {value: at for at, value in enumerate(classes.values)}
        to = np.array([number.get(value, np.nan) for value in own.values], np.float32)
        labels = to[self.labels.astype(np.intp)]
        if (wrong := np.isnan(labels)).any():
            at = int(wrong.argmax())
            raise unseen_label(own.values[int(self.labels[at])], at + 1)
        return replace(self, labels=labels, preparation={**self.preparation, "classes": list(classes.values)})

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.labels)

    @property
    def sparse(self) -> bool:
        """See `Source`."""
        return is_sparse(self.features)

    @property
    def roles_said(self) -> tuple[str, ...]:
        """See `Source`."""
        return tuple(self.said)

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""
        return {
            "kind": "scipy" if self.sparse else "numpy" if isinstance(self.features, np.ndarray) else "pandas",
            "rows": self.rows,
            "columns": list(self.columns) if self.columns else None,
            "files": [],
            **dict.fromkeys(self.said),
            **self.roles.described(self.columns),
            **({"categorical": described(coding, self.heading.names)} if (coding := self.coding) else {}),
            **self.preparation,
        }

    @property
    def coding(self) -> dict[int, Categories]:
        """The categories of the features that have some."""
        return coding_of(self.features, self.roles) if hasattr(self.features, "iloc") else {}

    def coded(self, coding: Coding) -> Memory:
        """The same rows with the codes of others.

        Raises:
            DataError: a category is none of these, naming the row.
        """
        return replace(self, features=coded(self.features, coding, self.roles))

    @property
    def heading(self) -> Heading:
        """The columns beside the target."""
        places = self.roles.features(self.features.shape[1])
        return Heading(names=self.roles.feature_names(self.columns), count=len(places))

    def fingerprint(self) -> str:
        """See `Channel.fingerprint`."""
        codes = [categories.digest() for categories in self.coding.values()]
        codes += [repr(self.preparation[key]) for key in ("classes", "missing") if key in self.preparation]
        return fingerprint.of_rows(self._digested(), self.labels, self.said, codes)

    def parts(self) -> Parts:
        """See `Channel.parts`."""
        names = self.heading.names or tuple(map(str, range(self.heading.count)))
        return fingerprint.parts_of_rows(self._digested(), self.labels, self.said, names)

    def _digested(self) -> Any:
        """One row in so many."""
        width = 2 * self.features.nnz // self.rows if self.sparse else self.features.shape[1]
        return self._features(slice(0, None, fingerprint.stride(self.rows, width)))

    def look(self) -> NDArray[np.float32]:
        """All labels; the rows were checked when they came."""
        return self.labels

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank."""
        mine: Any = slice(rank, None, world_size)
        if QID in self.said:
            mine = np.flatnonzero(self.said[QID] % world_size == rank)
            check_filled(len(mine), self.said)
        return self._rows(mine)

    def each(self, rank: int, world_size: int) -> Iterator[Table]:
        """The same, `BLOCK_ROWS` rows at a time."""
        mine = np.arange(rank, self.rows, world_size)
        if QID in self.said:
            mine = np.flatnonzero(self.said[QID] % world_size == rank)
        for start in range(0, len(mine), BLOCK_ROWS):
            yield self._rows(mine[start : start + BLOCK_ROWS])

    def _rows(self, mine: Any) -> Table:
        return Table(
            features=self._features(mine),
            labels=np.ascontiguousarray(self.labels[mine]),
            feature_names=self.roles.feature_names(self.columns),
            said={role: np.ascontiguousarray(numbers[mine]) for role, numbers in self.said.items()},
        )

    def _features(self, rows: Any) -> Any:
        if self.sparse:
            return self.features[rows]
        if isinstance(self.features, np.ndarray):
            return array_features(self.features[rows], self.roles)
        return frame_features(self.features.iloc[rows], self.roles)

    def read_whole(self) -> Table:
        """All rows, in their order."""
        return self.read(0, 1)

    def place(self, num_workers: int) -> Shards | Memory:
        """One object a rank; the same rows where they are, for this process."""
        if num_workers == 0:
            return self
        import ray

        return Shards(pieces=tuple((ray.put(self.read(rank, num_workers)),) for rank in range(num_workers)))
