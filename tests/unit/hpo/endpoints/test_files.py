"""Prediction of files: all rows, in their order, in one file that is there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy.sparse import csr_matrix

from hpo.endpoints.files import _batches, predict_files
from hpo.endpoints.scoring import TensorScorer
from tests.support.hpo.endpoints.files import (
    files,  # noqa: F401  # A fixture.
    libsvm,
)
from tests.support.refusals import refuses, refuses_each
from tests.support.scored_rows import FRAME, MODEL, SCORER
from trainers import ConfigurationError, DataError


@pytest.mark.parametrize("names", [None, ["a", "b", "c"], [0, 1, 2]], ids=["none", "names", "places"])
def test_the_first_line_is_a_row_where_it_is_all_numbers(tmp_path: Path, names: list[Any] | None) -> None:
    """As channels find it; but for the numbers that pandas writes over columns without names."""
    rows = FRAME if names is None else FRAME.set_axis(names, axis=1)
    rows.to_csv(tmp_path / "rows.csv", index=False, header=names is not None)
    [(_, found)] = _batches([tmp_path / "rows.csv"], {}, 1000)
    assert isinstance(found, pd.DataFrame)
    assert len(found) == 900
    assert list(found.columns) == (["a", "b", "c"] if names == ["a", "b", "c"] else [0, 1, 2])
    expected = MODEL.predict(xgboost.DMatrix(FRAME))
    np.testing.assert_allclose(SCORER.predict(SCORER.checked(found)), expected, rtol=1e-6)


def test_wrong_arguments_are_told(files: list[Path], tmp_path: Path) -> None:
    def predict(*, names: list[str] | None = None, out: str = "out.csv", workers: int = 1) -> int:
        given = files if names is None else [tmp_path / name for name in names]
        return predict_files(SCORER, given, tmp_path / out, workers=workers)

    refuses_each(
        [
            (lambda: predict(out="out.txt"), ("out.txt", ".csv", ".parquet")),
            (lambda: predict(names=["none.csv"]), (str(tmp_path / "none.csv"),)),
            (lambda: predict(out="one.csv"), (str(tmp_path / "one.csv"),)),
            (lambda: predict(workers=-1), ("workers", -1, 0)),
            (lambda: predict(workers=True), ("workers", True, 0)),
        ],
        (ConfigurationError, DataError),
    )


def test_libsvm_files_that_do_not_fit_the_model_are_told(tmp_path: Path) -> None:
    rows = csr_matrix(np.array([[0.0, 1.0, 0.0]], dtype=np.float32))
    file = libsvm(tmp_path / "a.libsvm", rows, 0)
    with refuses(ConfigurationError, field="a.libsvm", value=0, remedy=(".csv", ".parquet")):
        predict_files(SCORER, [file], tmp_path / "out.csv", workers=1)
    wide = libsvm(tmp_path / "b.libsvm", csr_matrix(np.ones((1, 4), dtype=np.float32)), 0)
    with refuses(DataError, field="b.libsvm", value=3, remedy=("0", "2")):
        predict_files(SCORER, [wide], tmp_path / "out.csv", workers=1)
    with refuses(ConfigurationError, field="a.libsvm", value="XGBoost", remedy=(".csv", ".parquet")):
        predict_files(TensorScorer(state={}, model_fn="a:b"), [file], tmp_path / "out.csv", workers=1)


def test_rows_of_one_batch_are_predicted_without_another_process(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpo.endpoints.files._in_processes", None)  # Called, it would raise.
    done: list[int] = []
    assert predict_files(SCORER, files[:1], tmp_path / "out.parquet", on_rows=done.append) == 500
    assert done == [500]
    expected = MODEL.predict(xgboost.DMatrix(FRAME[:500]))
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "out.parquet")["prediction"], expected)
    with pytest.raises(TypeError):
        predict_files(SCORER, files[:1], tmp_path / "out.parquet", batch_rows=499)
