"""Rows in a Ray Dataset, sharded in place: none passes through the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainers.channels.arrow import arrow_rows
from trainers.channels.fingerprint import Parts
from trainers.channels.rows import QID, Preparation, Roles, checked_roles
from trainers.channels.table import (
    Heading,
    Shards,
    Table,
    check_schema,
    check_shard,
    unique_names,
    without_index,
)
from trainers.errors import ConfigurationError, DataError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RayData:
    """A Ray Dataset, and the roles of its columns. Make it with `of`."""

    dataset: Any
    target: str | int | None
    said: Mapping[str, Any] = field(default_factory=dict)
    drop: Sequence[str | int] = ()
    missing: float | None = None

    @classmethod
    def of(
        cls,
        dataset: Any,
        target: str | int | None,
        given: Mapping[str, Any],
        drop: Sequence[str | int] = (),
        missing: float | None = None,
    ) -> RayData:
        """Checks the roles, where the columns are known without executing the dataset; see `Roles.of`."""
        made = cls(dataset=dataset, target=target, said=checked_roles(given), drop=drop, missing=missing)
        if QID in made.said:
            raise ConfigurationError(
                f"qid={made.said[QID]!r} of a ray.data.Dataset: its blocks are dealt out row by row, and would split "
                "queries; write it to Parquet files, a query in one"
            )
        if (columns := dataset.columns(fetch_if_missing=False)) is not None:
            made._roles(columns)
        return made

    def _roles(self, columns: Sequence[str]) -> Roles:
        return Roles.of(self.target, self.said, columns, len(columns), self.drop)

    @property
    def preparation(self) -> Preparation:
        """How cells become numbers."""
        return Preparation(missing=self.missing)

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known."""
        from ray.data.dataset import MaterializedDataset

        # Counting any other dataset may execute it.
        return self.dataset.count() if isinstance(self.dataset, MaterializedDataset) else None

    @property
    def heading(self) -> Heading | None:
        """The columns beside the target, where they are known without executing the dataset."""
        columns = self.dataset.columns(fetch_if_missing=False)
        if columns is None:
            return None
        roles = self._roles(columns)
        return Heading(names=roles.feature_names(columns), count=len(roles.features(len(columns))))

    def parts(self) -> Parts:
        """See `Channel.parts`; without executing the dataset there are none."""
        return {}

    def look(self) -> None:
        """Nothing: to see its rows is to execute the dataset, which takes Ray."""

    @property
    def sparse(self) -> bool:
        """See `Source`."""
        return False

    @property
    def roles_said(self) -> tuple[str, ...]:
        """See `Source`."""
        return tuple(self.said)

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""
        columns = self.dataset.columns(fetch_if_missing=False)
        return {
            "kind": "ray.data",
            "rows": self.rows,
            "columns": columns,
            "files": self.dataset.input_files(),
            **(self._roles(columns).described(columns) if columns else {"target": self.target, **self.said}),
            **self.preparation.described(columns),
        }

    def fingerprint(self) -> None:
        """None: to see its rows is to execute the dataset."""

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank; it executes the dataset."""
        return self.place(world_size).read(rank, world_size)

    def place(self, num_workers: int) -> Shards:
        """One object a rank and block; it executes the dataset."""
        if num_workers == 0:
            raise ConfigurationError(
                "a ray.data.Dataset lives on a Ray cluster, and num_workers=0 trains without one; "
                "give its to_pandas() or its files, or num_workers=1 or more"
            )
        import ray

        look = ray.remote(_look).options(num_cpus=0)
        blocks = self._blocks()
        looks = ray.get([look.remote(block) for block in blocks])
        filled = [(block, rows, schema) for block, (rows, schema) in zip(blocks, looks, strict=True) if rows]
        check_shard(sum(rows for _, rows, _ in filled), 0, num_workers)
        columns = unique_names(filled[0][2].names)
        roles = self._roles(columns)
        for _, _, schema in filled:
            check_schema([schema.field(name) for at, name in enumerate(columns) if at not in roles.dropped])
        cut: Any = ray.remote(_cut).options(num_cpus=0, num_returns=num_workers + 1)
        cuts, seen = [], 0
        for block, rows, _ in filled:
            cuts.append(cut.remote(block, columns, roles, self.preparation, seen, num_workers))
            seen += rows
        problems, *pieces = zip(*cuts, strict=True)
        for problem in filter(None, ray.get(list(problems))):
            raise problem
        return Shards(pieces=tuple(pieces))

    def _blocks(self) -> list[Any]:
        """The dataset's blocks as Arrow tables, in the order of its rows: the same for every run of a job."""
        options = self.dataset.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            blocks: list[Any] = self.dataset.to_arrow_refs()
        finally:
            options.preserve_order = before
        return blocks


def _look(block: Any) -> tuple[int, Any]:
    """Runs as a Ray task: rows and schema of a block."""
    return int(block.num_rows), without_index(block.schema)


def _cut(
    block: Any, columns: tuple[str, ...], roles: Roles, preparation: Preparation, seen: int, num_workers: int
) -> tuple[Any, ...]:
    """Runs as a Ray task: None, then each rank's rows of a block that `seen` rows lie before.

    What is wrong with rows comes in the first place: raised, it would come with the task's traceback.
    """
    table = block.select(list(columns))
    ranks = range(num_workers)
    try:
        pieces = [
            arrow_rows(table, columns, roles, seen=seen, rank=rank, world_size=num_workers, preparation=preparation)
            for rank in ranks
        ]
    except DataError as error:
        return error, *ranks
    return None, *pieces
