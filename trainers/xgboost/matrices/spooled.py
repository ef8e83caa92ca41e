"""A worker's rows on disk, which come to XGBoost a block at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import Table
from trainers.errors import DataError

BLOCK_BYTES = 32 << 20
"""Of a block's features: some blocks are in memory at a time, and XGBoost makes a page of each."""


SCORED_BYTES = 64 << 20
"""Of features that are scored and stay in memory: on disk, XGBoost reads them anew for each round's predictions."""


class Spooled:
    """Rows on disk, with their labels and what is said of them; what reads all labels, maps them.

    They are read from their source once, and from disk as often as XGBoost goes through them: three times for bins.

    Args:
        blocks: the rows, in order, of numbers alone.
        folder: where a folder for them is made; it goes with that.

    Raises:
        DataError: a block is wrong, or there is no room for it.
    """

    def __init__(self, blocks: Iterable[Table], folder: str) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._lengths: list[int] = []
        self._widths: dict[str, tuple[int, ...]] = {}
        self.feature_names: tuple[str, ...] | None = None
        for block in blocks:
            if not isinstance(block.features, np.ndarray):
                raise DataError(f"{_NUMBERS}, and these rows are a {type(block.features).__name__}; {_REMEDY}")
            self._write(block)
            self._lengths.append(len(block.labels))
            self.feature_names = block.feature_names

    @property
    def labels(self) -> NDArray[np.float32]:
        """Of all rows."""
        return self._column(_LABEL)

    @property
    def said(self) -> dict[str, NDArray[np.float32]]:
        """What is said of all rows, by role."""
        return {role: self._column(role) for role in self._widths if role != _LABEL}

    def blocks(self) -> Iterator[Table]:
        """The rows again."""
        labels, said, start = self.labels, self.said, 0
        for number, length in enumerate(self._lengths):
            rows = slice(start, start + length)
            yield Table(
                features=np.load(self._features(number)),
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
        features = np.concatenate([block.features for block in self.blocks()])
        return Table(features=features, labels=self.labels, feature_names=self.feature_names, said=self.said)

    def matrix(self, kind: Callable[..., Any], options: dict[str, Any]) -> Any:
        """XGBoost's matrix of the rows, whose pages are on disk until it goes.

        Args:
            kind: XGBoost's class.
            options: its arguments beside the rows.

        Raises:
            DataError: there is no room for the pages.
        """
        self._check_room(kind, int(options.get("max_bin", 256)))
        return kind(_feed(self.blocks, f"{self._folder}/page"), **options)

    def _check_room(self, kind: Callable[..., Any], max_bin: int) -> None:
        """Looks for the room that pages take, since XGBoost 3.2 ends the process where it finds none."""
        import xgboost

        numbers = self.nbytes / 4
        needed = numbers * (_ROW_BYTES if kind is xgboost.DMatrix else _BIN_BYTES * (1 if max_bin <= 256 else 2))
        free = shutil.disk_usage(self._folder).free
        if free < needed:
            raise DataError(
                f"pages of rows for external_memory take {needed / 2**20:,.0f} MiB in {self._folder}, which has "
                f"{free / 2**20:,.0f} MiB left; give TMPDIR a folder with room"
            )

    def forget(self) -> None:
        """Removes the features from disk, where no other matrix will be made of them."""
        for number in range(len(self._lengths)):
            self._features(number).unlink(missing_ok=True)

    def _features(self, number: int) -> Path:
        return self._folder / f"{number}.npy"

    def _column(self, name: str) -> NDArray[np.float32]:
        shape = (sum(self._lengths), *self._widths[name])
        return np.memmap(self._folder / name, np.float32, "r", shape=shape)

    def _write(self, block: Table) -> None:
        try:
            np.save(self._features(len(self._lengths)), block.features)
            for name, numbers in {_LABEL: block.labels, **block.said}.items():
                self._widths[name] = numbers.shape[1:]
                with (self._folder / name).open("ab") as file:
                    file.write(np.ascontiguousarray(numbers, np.float32).tobytes())
        except OSError as error:
            raise DataError(
                f"rows for external_memory cannot be written to {self._folder}: {error}; give TMPDIR a folder with "
                "room for 4 bytes a number and as much again for XGBoost"
            ) from None


_ROW_BYTES, _BIN_BYTES = 8, 2.5
"""Of a number that is not missing, in a page of rows and in one of bins; of more than 256 bins it is twice as much."""

_LABEL = "label"
_NUMBERS = "external_memory takes rows of numbers"
_REMEDY = "encode categories as numbers, and give sparse rows as dense ones; or leave external_memory out"


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
            names = None if block.feature_names is None else list(block.feature_names)
            input_data(data=block.features, label=block.labels, feature_names=names, **block.said)
            return True

    return Feed()
