"""A named input of a trainer, on its driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trainers.channels.distribution import SHARDED, Distribution, check_distribution
from trainers.channels.examples import Examples, OpenedExamples, PlacedExamples
from trainers.channels.files import Files, LibsvmFiles, check_delimiter, open_files
from trainers.channels.fingerprint import Parts
from trainers.channels.folder import Folder, OpenedFolder, PlacedFolder
from trainers.channels.labels import LabelRule, label_summary
from trainers.channels.memory import (
    Chosen,
    Memory,
    from_array,
    from_frame,
    from_parts,
    is_arrow,
    is_frame,
    of_arrow,
    plain_array,
)
from trainers.channels.placed import PlacedChannel, about, check_labels, checked
from trainers.channels.ray_data import RayData
from trainers.channels.rows import (
    BASE_MARGIN,
    QID,
    ROLES,
    Categories,
    Coding,
    check_some,
    checked_missing,
    checked_roles,
    named_columns,
)
from trainers.channels.table import Heading, Shards, Table, check_shard
from trainers.checking import some_of
from trainers.errors import ConfigurationError, DataError


class Source(Protocol):
    """Source of a channel. Its errors do not say which channel they are about; `Channel` adds that."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""

    @property
    def heading(self) -> Heading | None:
        """The columns beside the target, where they are known without reading them."""

    @property
    def roles_said(self) -> tuple[str, ...]:
        """What is said of each row beside its label."""

    @property
    def sparse(self) -> bool:
        """Whether features come as SciPy's CSR."""

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""

    def fingerprint(self) -> str | None:
        """See `Channel.fingerprint`."""

    def parts(self) -> Parts:
        """See `Channel.parts`."""

    def look(self) -> NDArray[np.float32] | None:
        """All labels, after checking what rows can be checked within a second; None where that takes longer."""

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank, read in this process."""

    def place(self, num_workers: int) -> Files | LibsvmFiles | Memory | Shards | PlacedFolder | PlacedExamples:
        """The channel as placed for the workers; for 0 workers, for this process."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channel:
    """A named input of a trainer. Make it with `of`.

    Args:
        name: what it is called.
        source: what it reads from.
        rules: what is expected of its labels.
        origin: how its rows came into memory, where another process can get them the same way; JSON.
        labels: what `look` found of its labels, as `label_summary` has it; empty before, and of large files.
        measured: whether the objective of the job is measured on it.
    """

    name: str
    source: Source
    rules: tuple[LabelRule, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    measured: bool = False

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        target: str | int | None = None,
        name: str | None = None,
        header: bool | None = None,
        delimiter: str = ",",
        weight: str | int | None = None,
        base_margin: str | int | Sequence[str | int] | None = None,
        label_lower_bound: str | int | None = None,
        label_upper_bound: str | int | None = None,
        qid: str | int | None = None,
        categorical: str | int | Sequence[str | int] | None = None,
        drop: str | int | Sequence[str | int] | None = None,
        keep: str | int | Sequence[str | int] | None = None,
        missing: float | None = None,
        distribution: Distribution | None = None,
    ) -> Channel:
        """Checks what can be checked without reading the data; of categorical columns in files, all rows are read.

        Dates become days since 1970-01-01. Text labels become classes, numbered from 0 in sorted order.

        Args:
            source: a pandas DataFrame; a `pyarrow.Table`; a NumPy array with two dimensions; a pair (X, y) of them, or
                (X, y, said) with what else is said of each row, such as {"weight": w}, where X may be a sparse matrix
                of SciPy's, whose absent entries are missing; a path, a URI (`s3://`, `gs://`, `file://`), a
                directory, a pattern (`part-*.csv`), a `.manifest` of SageMaker's or a list of these, of .csv,
                .parquet or .libsvm files; a `ray.data.Dataset`; a `Folder` of files as they are; `Examples`, for
                PyTorch; or a channel, which is returned under `name`.
            target: the column to predict, by name or position. It may be left out where columns have no names, and the
                first is meant; where exactly one column has a usual name, of `rows.USUAL_TARGETS`; and where bounds of
                the labels are given.
            name: what the channel is called, for messages.
            header: whether a CSV file's first line holds names; None: it does where one of its cells is no number.
            delimiter: what separates a CSV file's cells.
            weight: the column of rows' weights, by name or position: numbers of 0 or more.
            base_margin: the column of margins that boosting begins at, or a list of columns, one a class.
            label_lower_bound: the column of what a label is at least, for survival with "survival:aft".
            label_upper_bound: the column of what it is at most; infinite where that is not known.
            qid: the column of the queries whose rows are ranked, whole numbers; the rows of a query stand together, in
                one file, and go to one worker.
            categorical: columns whose values are categories, text or whole numbers, by name or position. Columns of
                pandas' `category` dtype and Arrow dictionaries are, without a word.
            drop: columns to leave out, by name or position.
            keep: columns that are features although they look like identifiers. Others that are called as identifiers
                usually are, such as customer_id, and hold each value once are left out.
            missing: a number that stands for a missing value among features, as XGBoost's `missing` does.
            distribution: how files are dealt out where that is asked for, in SageMaker's words: "ShardedByS3Key", each
                file whole to one worker; "FullyReplicated", all rows to each. None: in balance, some files whole, and
                some rows of others.

        Raises:
            ConfigurationError: `target` or another argument does not fit the source.
            DataError: the source is missing, empty, or holds what is not a number.
        """
        name = name if name is not None else source.name if isinstance(source, Channel) else "data"
        given = dict(zip(ROLES, (weight, base_margin, label_lower_bound, label_upper_bound, qid), strict=True))
        with about(name):
            if not isinstance(header, bool | None):
                raise ConfigurationError(f"header={header!r}: give True, False, or None to have it found out")
            check_delimiter(delimiter)
            chosen = Chosen(
                categorical=named_columns("categorical", categorical),
                drop=named_columns("drop", drop),
                keep=named_columns("keep", keep),
                missing=checked_missing(missing),
            )
            if distribution is not None:
                check_distribution(distribution, "it")
        of_text = header is not None or delimiter != ","
        rows_only = target is not None or of_text or checked_roles(given) or chosen != Chosen()
        if isinstance(source, Channel):
            if rows_only or distribution:
                raise ConfigurationError(
                    "target, header, delimiter, distribution and other columns' roles are a Channel's own: give them "
                    "where it is made"
                )
            return source if name == source.name else replace(source, name=name)
        with about(name):
            if isinstance(source, Folder | Examples) and rows_only:
                raise ConfigurationError(
                    "target, header and delimiter are for rows, and so are weights and categories; leave them out for "
                    f"{'a Folder' if isinstance(source, Folder) else 'Examples'}"
                )
            return cls(name=name, source=_source(source, target, header, delimiter, given, chosen, distribution))

    @property
    def said(self) -> tuple[str, ...]:
        """What is said of each row beside its label, of `rows.ROLES`."""
        return self.source.roles_said

    @property
    def sparse(self) -> bool:
        """Whether its features come as SciPy's CSR, in which absent entries are missing."""
        return self.source.sparse

    @property
    def entries(self) -> int:
        """How many entries sparse rows have; 0 for dense ones."""
        if isinstance(self.source, LibsvmFiles):
            return self.source.entries
        return int(self.source.features.nnz) if isinstance(self.source, Memory) and self.sparse else 0

    @property
    def distribution(self) -> Distribution | None:
        """How its files are dealt out, where that was asked for; a `Folder`'s own is not told here."""
        return self.source.distribution if isinstance(self.source, Files | LibsvmFiles) else None

    @property
    def margins(self) -> int:
        """How many base margins a row has."""
        if BASE_MARGIN not in self.said:
            return 0
        if isinstance(self.source, Memory):
            return self.source.said[BASE_MARGIN].size // self.source.rows
        columns = self.describe()[BASE_MARGIN]
        return len(columns) if isinstance(columns, list | tuple) else 1

    def describe(self) -> dict[str, Any]:
        """A summary for the record, as JSON takes it: kind, rows, columns, files, target; None where not known."""
        return {**self.source.describe(), **({"labels": dict(self.labels)} if self.labels else {})}

    def files_to_see(self) -> list[str]:
        """Paths and URIs of the files that every node with workers has to see alike; of a folder's, some."""
        source = self.source
        if isinstance(source, OpenedFolder | OpenedExamples):
            return source.samples()
        return list(self.describe().get("files") or ())

    def fingerprint(self) -> str | None:
        """A short digest of what the rows are; None where that takes executing a Ray Dataset.

        In memory it is of the values: of every row up to `fingerprint.MOST_BYTES`, of all labels and some of the rows
        beyond that. Small local files are digested by their bytes, others by their names, sizes and times.

        Raises:
            DataError: a file is gone, or cannot be read.
        """
        with about(self.name):
            return self.source.fingerprint()

    def parts(self) -> Parts:
        """Digests of files or columns by their names: what has changed where fingerprints differ; raises as they do."""
        with about(self.name):
            return self.source.parts()

    def digests(self) -> tuple[str | None, Parts]:
        """`fingerprint` and `parts` together, for which files are read once; raises as they do."""
        with about(self.name):
            if isinstance(self.source, Files | LibsvmFiles):
                return self.source.digests()
            return self.source.fingerprint(), self.source.parts()

    def expecting(self, rules: tuple[LabelRule, ...], *, measured: bool = False) -> Channel:
        """The same channel, whose labels are checked by these rules wherever they are read.

        Args:
            rules: for its labels.
            measured: whether the objective of the job is measured on it.
        """
        named = tuple(replace(rule, names=self.classes) for rule in rules) if rules and self.classes else rules
        return replace(self, rules=named, measured=measured)

    @property
    def coding(self) -> Coding:
        """The categories of features, by their places among the features: value number i has the code i."""
        return self.source.coding if isinstance(self.source, Files | Memory) else {}

    def feature(self, at: int) -> str:
        """A feature for a message, by its place among the features."""
        heading = self.source.heading
        return f"column {heading.names[at]!r}" if heading and heading.names else f"column {at} beside the target"

    def coded_like(self, train: Channel) -> Channel:
        """The same channel, whose categories and classes have the codes of the channel that is trained on.

        Raises:
            DataError: columns differ, or a category or class is none of these.
        """
        if isinstance(self.source, OpenedExamples) and isinstance(train.source, OpenedExamples):
            with about(self.name):
                return replace(self, source=self.source.numbered_like(train.source, train.name))
        made = self._ordered_like(train)._classed_like(train)
        return made._with_codes_of(train) if made.coding or train.coding else made

    @property
    def classes(self) -> tuple[str, ...]:
        """Text labels by the numbers that are trained on; empty where labels are numbers."""
        return tuple(self.describe().get("classes", ())) if isinstance(self.source, Files | Memory) else ()

    @property
    def preparation(self) -> dict[str, Any]:
        """What a model has to know to predict rows as they come: target, classes, dates and missing; JSON.

        It is empty where rows need none of it.
        """
        described = self.describe()
        found: dict[str, Any] = {key: described[key] for key in ("classes", "dates", "missing") if key in described}
        return {"target": described.get("target"), **found} if found else {}

    def _ordered_like(self, train: Channel) -> Channel:
        """The same channel with the features of the one that is trained on, which are found by their names."""
        if not isinstance(self.source, Files | Memory):
            return self
        mine, theirs, columns = self.source.heading.names, train.source.heading, self.source.columns
        if mine is None or columns is None or theirs is None or theirs.names is None or mine == theirs.names:
            return self
        left_out = {*train.describe().get("dropped", ()), *train.describe().get("identifiers", ())}
        if not {*theirs.names} <= self._may_be_features(columns) or not {*mine} - {*theirs.names} <= left_out:
            return self  # `check_like` says how they differ.
        return replace(self, source=self.source.ordered_like(theirs.names))

    def _may_be_features(self, columns: Sequence[str]) -> set[str]:
        roles = self.source.roles if isinstance(self.source, Files | Memory) else None
        taken = () if roles is None else (roles.target, *(at for _, places in roles.said for at in places))
        return {name for at, name in enumerate(columns) if at not in taken}

    def _classed_like(self, train: Channel) -> Channel:
        """The same channel whose text labels have the classes of the one that is trained on.

        Raises:
            DataError: labels are text in one of the two, or one is a class of no row that is trained on.
        """
        if self.classes == train.classes:
            return self
        with about(self.name):
            if not self.classes or not train.classes or not isinstance(self.source, Files | Memory):
                mine, theirs = ("text", "numbers") if self.classes else ("numbers", "text")
                raise DataError(f"labels are {mine}, and {theirs} in channel {train.name!r}; write both alike")
            if new := [label for label in self.classes if label not in train.classes]:
                raise DataError(
                    f"labels are {some_of(list(map(repr, new)))}, which no row of channel {train.name!r} has; leave "
                    "such rows out, or add some to it"
                )
            return replace(self, source=self.source.classed(Categories(values=train.classes)))

    def _with_codes_of(self, train: Channel) -> Channel:
        """The same channel, whose categories have the codes of the one that is trained on."""
        self.check_like(train)
        with about(self.name):
            if not isinstance(self.source, Files | Memory):
                raise DataError(
                    f"channel {train.name!r} has categories, which this kind of source does not; write it to Parquet "
                    "files"
                )
            for at in self.coding:
                if at not in train.coding:
                    raise DataError(
                        f"{self.feature(at)} holds categories, and numbers in channel {train.name!r}; name it in "
                        "categorical=[...] of both"
                    )
            return replace(self, source=self.source.coded(train.coding))

    def check_like(self, train: Channel) -> None:
        """Compares the columns with those of the channel that is trained on, as far as both are known.

        Raises:
            DataError: names, order or count differ.
        """
        mine, theirs = self.source.heading, train.source.heading
        with about(self.name):
            if mine is not None and theirs is not None:
                mine.check_like(theirs, train.name)

    def look(self, num_workers: int = 1) -> Channel:
        """Read what takes about a second: rows in memory, small files, and the beginning of larger local files.

        Returns:
            The same channel, with a summary of its labels where all were read.

        Raises:
            DataError: rows are damaged or fewer than the workers, labels not what is expected, or a column that is
                categorical has no category.
        """
        with about(self.name):
            check_some(self.coding, self.feature)
            if isinstance(self.source, OpenedFolder):
                self.source.check_workers(num_workers)
            self._check_files(num_workers)
            labels = self.source.look()
            check_shard(self.source.rows if labels is None else len(labels), 0, num_workers)
            if labels is not None:
                check_labels(self.rules, labels, complete=True)
            if labels is not None and QID in self.said and num_workers > 1:
                self.source.read(num_workers - 1, num_workers)  # The last is the one that lacks a query first.
            return self if labels is None else replace(self, labels=label_summary(labels))

    def _check_files(self, workers: int) -> None:
        if not isinstance(self.source, Files | LibsvmFiles) or self.source.distribution != SHARDED:
            return
        if (files := len(self.source.files)) < workers:
            raise DataError(
                f"{files} file{'s' if files != 1 else ''} to deal out with {SHARDED!r} to {workers} workers: split the "
                "files, leave distribution out, or take fewer workers"
            )

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank, in this process; only a Ray Dataset needs Ray for it."""
        with about(self.name):
            check_shard(self.source.rows, rank, world_size)
            return checked(self.rules, self.source.read(rank, world_size), complete=world_size == 1)

    def read_whole(self) -> Table:
        """All rows, in their order, in this process."""
        return self.read(0, 1)

    def pieces(self) -> Iterator[Table]:
        """All rows, some at a time, in this process.

        Raises:
            ConfigurationError: it is a folder, or a Ray Dataset, whose blocks this process does not have.
            DataError: rows are damaged; what `rules` say of labels is not checked.
        """
        with about(self.name):
            if isinstance(self.source, Files):
                yield from map(self.source.with_categories, self.source.each(0, 1))
            elif isinstance(self.source, LibsvmFiles | Memory):
                yield from self.source.each(0, 1)
            else:
                raise ConfigurationError("it is no table of files or in memory, whose rows come in blocks")

    def place(self, num_workers: int) -> PlacedChannel:
        """Makes the channel readable by each of `num_workers` workers, on any node.

        What is in memory goes to Ray's object store, one object a rank; files stay where they are. Do it once a job,
        before its gangs hold the cluster: a Ray Dataset is executed here. For 0 workers all stays in this process,
        which reads it as rank 0 of 1, or as every rank of workers that it simulates.

        Raises:
            ConfigurationError: 0 workers and a Ray Dataset.
            DataError: there are fewer rows than workers.
        """
        with about(self.name):
            check_shard(self.source.rows, 0, num_workers or 1)
            self._check_files(num_workers)
            placed = self.source.place(num_workers)
            return PlacedChannel(
                name=self.name,
                num_workers=num_workers,
                source=placed,
                rules=self.rules,
                preparation=self.preparation,
                measured=self.measured,
            )


def _source(
    source: Any,
    target: str | int | None,
    header: bool | None,
    delimiter: str,
    given: Mapping[str, Any],
    chosen: Chosen,
    distribution: Distribution | None,
) -> Source:
    paths = source if isinstance(source, list | tuple) else [source]
    if not paths:
        raise ConfigurationError("there are no paths; give at least one")
    if all(isinstance(path, str | os.PathLike) for path in paths):
        return open_files(
            [os.fspath(path) for path in paths],
            target,
            header,
            delimiter,
            given,
            chosen.categorical,
            distribution,
            chosen.drop,
            chosen.keep,
            chosen.missing,
        )
    if distribution is not None:
        own = "give it to the Folder" if isinstance(source, Folder) else "leave it out for other sources"
        raise ConfigurationError(f"distribution={distribution!r} is for paths of files; {own}")
    if isinstance(source, Examples):
        return OpenedExamples.of(source)
    if isinstance(source, Folder):
        return OpenedFolder.of(source)
    if header is not None or delimiter != ",":
        raise ConfigurationError("header and delimiter are for CSV files; leave them out for other sources")
    if is_frame(source) or is_arrow(source):
        return from_frame(of_arrow(source) if is_arrow(source) else source, target, given, chosen)
    if isinstance(source, np.ndarray) or hasattr(source, "toarray"):
        return from_array(plain_array(source), target, given, chosen)
    if isinstance(source, tuple) and (len(source) == 2 or (len(source) == 3 and isinstance(source[2], Mapping))):
        return from_parts(source[0], source[1], source[2] if len(source) == 3 else {}, target, given, chosen)
    # Whoever holds a Ray Dataset has imported Ray Data, which takes seconds.
    if "ray.data" in sys.modules and isinstance(source, sys.modules["ray.data"].Dataset):
        if chosen.categorical:
            raise ConfigurationError(
                f"categorical={chosen.categorical!r} of a ray.data.Dataset: which categories there are would be known "
                "only once all its rows were read; write it to Parquet files, or encode these columns as numbers"
            )
        return RayData.of(source, target, given, chosen.drop, chosen.missing)
    raise ConfigurationError(
        f"cannot read from {type(source).__name__}; give a DataFrame, an array with two dimensions, a pair (X, y), "
        "(X, y, {'weight': w}), paths or URIs of .csv, .parquet or .libsvm files, a ray.data.Dataset, Examples, or a "
        "Folder"
    )
