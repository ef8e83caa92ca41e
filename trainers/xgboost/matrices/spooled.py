"""A worker's rows on disk, which come to XGBoost a block at a time."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import QID, WEIGHT, Coding, Table, framed, from_parts_of, is_sparse, joined, parts_of, unframed
from trainers.deletion import delete_file
from trainers.errors import StorageError
from trainers.xgboost.matrices.categories import as_xgboost_takes

BLOCK_BYTES = 32 << 20
"""Of a block's features: some blocks are in memory at a time, and XGBoost makes a page of each."""


SCORED_BYTES = 64 << 20
"""Of features that are scored and stay in memory: on disk, XGBoost reads them anew for each round's predictions."""


class Spooled:
    """Rows on disk, with their labels and what is said of them; what reads all labels, maps them.

    They are read from their source once, and from disk as often as bins and XGBoost's pages need them.
    Categories are on disk as their codes.

    Args:
        blocks: the rows, in order; of rows with queries, each query whole in one of them.
        folder: where a folder for them is made; it goes with that.

    Raises:
        DataError: a block is wrong.
        StorageError: there is no room for it.
    """

    def __init__(self, blocks: Iterable[Table], folder: str) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._lengths: list[int] = []
        self._columns: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._sparse = False
        self.numbers = 0
        """How many numbers the features are; of sparse rows, how many entries."""
        self.coding: Coding = {}
        """The categories of features, by their places."""
        self.feature_names: tuple[str, ...] | None = None
        for block in blocks:
            self._write(block)
            self._lengths.append(len(block.labels))
            self.feature_names = block.feature_names

    @property
    def labels(self) -> NDArray[np.float32]:
        """Of all rows."""
        return self._column(_LABEL)

    @property
    def said(self) -> dict[str, NDArray[Any]]:
        """What is said of all rows, by role."""
        return {role: self._column(role) for role in self._columns if role != _LABEL}

    def blocks(self) -> Iterator[Table]:
        """The rows again."""
        labels, said, start = self.labels, self.said, 0
        for number, length in enumerate(self._lengths):
            rows = slice(start, start + length)
            yield Table(
                features=self._read(number),
                labels=labels[rows],
                feature_names=self.feature_names,
                said={role: numbers[rows] for role, numbers in said.items()},
            )
            start += length

    @property
    def nbytes(self) -> int:
        """Of the features."""
        return sum(self._features(number).stat().st_size for number in range(len(self._lengths)))

    def whole(self) -> Table:
        """All rows, in memory."""
        return joined(list(self.blocks()))

    def matrix(self, kind: Callable[..., Any], options: dict[str, Any]) -> Any:
        """XGBoost's matrix of the rows, whose pages are on disk until it goes.

        Args:
            kind: XGBoost's class.
            options: its arguments beside the rows.

        """
        return kind(_feed(self.blocks, f"{self._folder}/page"), **options)

    def lacks_room(self, max_bin: int, beside: int = 1) -> str:
        """The error where pages have no room on disk, of which XGBoost 3.2 ends the process; empty where they have.

        Args:
            max_bin: of the pages; 0 for pages of rows as they are.
            beside: how many workers write as much to the same disk.
        """
        bins = _SPARSE_BIN_BYTES if self._sparse else _BIN_BYTES * (1 if max_bin <= 256 else 2)
        needed = beside * self.numbers * (bins if max_bin else _ROW_BYTES)
        free = shutil.disk_usage(self._folder).free
        if free >= needed:
            return ""
        of_all = f" of {beside} workers" if beside > 1 else ""
        return (
            f"pages of rows{of_all} for external_memory take {needed / 2**20:,.1f} MiB in {self._folder}, which has "
            f"{free / 2**20:,.1f} MiB left; give TMPDIR a folder with room"
        )

    def forget(self) -> None:
        """Removes the features from disk, where no other matrix will be made of them."""
        for number in range(len(self._lengths)):
            delete_file(self._features(number))

    def _features(self, number: int) -> Path:
        return self._folder / f"{number}.{'npz' if self._sparse else 'npy'}"

    def _read(self, number: int) -> Any:
        if self._sparse:
            with np.load(self._features(number)) as parts:
                return from_parts_of(parts)
        features = np.load(self._features(number))
        return framed(features, self.feature_names, self.coding) if self.coding else features

    def _column(self, name: str) -> NDArray[Any]:
        dtype, shape = self._columns[name]
        return np.memmap(self._folder / name, dtype, "r", shape=(sum(self._lengths), *shape))

    def _write(self, block: Table) -> None:
        try:
            self._write_features(block.features)
            for name, numbers in {_LABEL: block.labels, **block.said}.items():
                self._columns[name] = numbers.dtype, numbers.shape[1:]
                with (self._folder / name).open("ab") as file:
                    file.write(np.ascontiguousarray(numbers).tobytes())
        except OSError as error:
            raise StorageError(
                f"rows for external_memory cannot be written to {self._folder}: {error}; give TMPDIR a folder with "
                "room for 4 bytes a number and as much again for XGBoost"
            ) from None

    def _write_features(self, features: Any) -> None:
        self._sparse = is_sparse(features)
        self.numbers += numbers_of(features)
        file = self._features(len(self._lengths))
        if self._sparse:
            np.savez(file, **parts_of(features))
        elif isinstance(features, np.ndarray):
            np.save(file, features)
        else:
            codes, self.coding = unframed(features)
            np.save(file, codes)


_ROW_BYTES, _BIN_BYTES, _SPARSE_BIN_BYTES = 8, 2.5, 5
"""Of a number that is not missing, in a page of rows and in one of bins; of more than 256 bins it is twice as much."""

_LABEL = "label"


def numbers_of(features: Any) -> int:
    """Return how many numbers features are; of sparse rows, how many entries."""
    return int(features.nnz if is_sparse(features) else math.prod(features.shape))


def as_arguments(rows: Table) -> dict[str, Any]:
    """Rows as arguments of XGBoost's matrices, by XGBoost's own names."""
    said = dict(rows.said)
    if QID in said:
        begins = np.append(True, said[QID][1:] != said[QID][:-1])
        said[QID] = np.cumsum(begins, dtype=np.uint32)  # They rise, also where rows of several ranks come together.
        if WEIGHT in said:  # One a query.
            said[WEIGHT] = said[WEIGHT][begins]
    return {
        "data": as_xgboost_takes(rows.features),
        "label": rows.labels,
        "feature_names": None if rows.feature_names is None else list(rows.feature_names),
        **said,
    }


def _feed(blocks: Callable[[], Iterator[Table]], prefix: str) -> Any:
    """XGBoost's iterator over blocks, which it goes through as often as it needs.

    Its class is made here, since XGBoost is imported where it is used.
    """
    from xgboost import DataIter

    class Feed(DataIter):
        """See above."""

        def __init__(self) -> None:
            self._blocks = blocks()
            super().__init__(cache_prefix=prefix)

        def reset(self) -> None:
            """Starts again."""
            self._blocks = blocks()

        def next(self, input_data: Callable[..., Any]) -> bool:
            """Hands over the next block; False where there is none."""
            block = next(self._blocks, None)
            if block is None:
                return False
            input_data(**as_arguments(block))
            return True

    return Feed()
