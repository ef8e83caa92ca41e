"""XGBoost's external memory by hand, as its tutorial has it: an iterator over files of arrays, in one process.

Written after https://xgboost.readthedocs.io/en/release_3.2.0/tutorials/external_memory.html, "Data Iterator".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from pyarrow import parquet

from experiments.external.rows import Rows


class ArrayFiles(xgboost.DataIter):
    """Batches of rows, each in a file of features and one of labels."""

    def __init__(self, files: Sequence[tuple[Path, Path]], cache_prefix: str) -> None:
        self._files, self._at = files, 0
        super().__init__(cache_prefix=cache_prefix)

    def next(self, input_data: Callable[..., Any]) -> bool:
        """Hands over the next batch."""
        if self._at == len(self._files):
            return False
        features, labels = self._files[self._at]
        input_data(data=np.load(features), label=np.load(labels))
        self._at += 1
        return True

    def reset(self) -> None:
        """Begins again."""
        self._at = 0


def as_arrays(folder: Path, files: Sequence[str]) -> list[tuple[Path, Path]]:
    """Parquet files as files of arrays, a row group each."""
    folder.mkdir(parents=True)
    found: list[tuple[Path, Path]] = []
    for path in files:
        opened = parquet.ParquetFile(path)
        for group in range(opened.num_row_groups):
            table = opened.read_row_group(group)
            pair = folder / f"x{len(found)}.npy", folder / f"y{len(found)}.npy"
            np.save(pair[0], np.stack([column.to_numpy() for column in table.columns[1:]], axis=1))
            np.save(pair[1], table.column(0).to_numpy())
            found.append(pair)
    return found


class ByHand:
    """Matrices of a table, and trainings on them.

    Args:
        rows: the table.
        folder: for arrays and pages.
        parameters: XGBoost's.
    """

    def __init__(self, rows: Rows, folder: Path, parameters: Mapping[str, Any]) -> None:
        self._parameters = dict(parameters)
        train = as_arrays(folder / "train", [str(path) for path in sorted(Path(rows.train).iterdir())])
        validation = as_arrays(folder / "validation", [rows.validation])
        began = time.perf_counter()
        self._train = xgboost.ExtMemQuantileDMatrix(ArrayFiles(train, f"{folder}/train-page"), max_bin=256)
        self._validation = xgboost.ExtMemQuantileDMatrix(
            ArrayFiles(validation, f"{folder}/validation-page"), max_bin=256, ref=self._train
        )
        self.building_seconds = time.perf_counter() - began

    def train(self, rounds: int) -> tuple[float, float]:
        """Seconds of a training, and the AUC after its last round."""
        said: dict[str, Any] = {}
        began = time.perf_counter()
        xgboost.train(
            self._parameters,
            self._train,
            rounds,
            evals=[(self._validation, "validation")],
            evals_result=said,
            verbose_eval=False,
        )
        return time.perf_counter() - began, said["validation"]["auc"][-1]
