"""Prediction of files: all rows, in their order, in one file that is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import xgboost
from scipy.sparse import csr_matrix

from hpo.endpoints.files import predict_files
from hpo.endpoints.scoring import BoosterScorer
from tests.support.hpo.endpoints.files import (
    files,  # noqa: F401  # A fixture.
    libsvm,
)
from tests.support.refusals import refuses
from tests.support.scored_rows import FRAME, MODEL, SCORER
from trainers import DataError
from trainers.xgboost.booster import note_preparation

RANDOM = np.random.default_rng(4)


def test_predictions_stand_in_the_rows_order(files: list[Path], tmp_path: Path) -> None:
    expected = MODEL.predict(xgboost.DMatrix(FRAME))
    done: list[int] = []
    assert predict_files(SCORER, files, tmp_path / "out.csv", workers=2, batch_rows=70, on_rows=done.append) == 900
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["prediction"], expected, rtol=1e-6)
    assert done == sorted(done)
    assert len(done) > 10
    assert predict_files(SCORER, files[:1], tmp_path / "out.parquet", workers=1) == 500
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "out.parquet")["prediction"], expected[:500])
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_cells_are_what_the_model_takes_whatever_the_first_ones_are(tmp_path: Path) -> None:
    """Types that the first megabyte suggests fit neither later cells nor categories such as "01"."""
    shops = np.array(["01", "02", "1"])[np.arange(900) % 3]
    known = FRAME[["a"]].assign(shop=pd.Categorical(shops))
    model = xgboost.train({"nthread": 1}, xgboost.DMatrix(known, shops == "02", enable_categorical=True), 5)
    late = pd.DataFrame({"a": [1, *[None] * 350_000, 1.5], "shop": ["01", *["1"] * 350_000, "02"]})
    late.astype({"a": object}).to_csv(tmp_path / "late.csv", index=False)
    scorer = BoosterScorer(raw=bytes(model.save_raw("ubj")))
    assert predict_files(scorer, [tmp_path / "late.csv"], tmp_path / "out.parquet", workers=1) == 350_002
    rows = late.assign(shop=pd.Categorical(late["shop"], ["01", "02", "1"]))
    expected = model.predict(xgboost.DMatrix(rows, enable_categorical=True))
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "out.parquet")["prediction"], expected, rtol=1e-6)


def test_a_wrong_row_is_told_by_its_file_and_nothing_is_written(files: list[Path], tmp_path: Path) -> None:
    text = (tmp_path / "one.csv").read_text().splitlines()
    wrong = ["x", *text[300].split(",")[1:]]
    (tmp_path / "one.csv").write_text("\n".join([*text[:300], ",".join(wrong), *text[301:]]) + "\n")
    out = tmp_path / "out.csv"
    out.write_text("before")
    with refuses(DataError, field=("one.csv", "row", "300", "'a'"), value="'x'"):
        predict_files(SCORER, files, out, workers=1, batch_rows=128)
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.csv", "out.csv", "two.parquet"]


def test_a_file_cut_short_is_told(files: list[Path], tmp_path: Path) -> None:
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[:-100])
    with refuses(DataError, field=("two.parquet", "row"), value=0):
        predict_files(SCORER, files[1:], tmp_path / "out.csv", workers=1)


KILLED = """
import os, sys
from hpo.endpoints.files import predict_files
from tests.support.scored_rows import SCORER

def told(rows):
    print(rows, flush=True)
    sys.stdin.read()  # For ever.

if __name__ == "__main__":
    predict_files(SCORER, [sys.argv[1]], sys.argv[2], workers=2, batch_rows=50, on_rows=told)
"""


@pytest.mark.fault
def test_processes_end_with_the_one_that_they_predict_for(files: list[Path], tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    killed = subprocess.Popen(
        [sys.executable, str(program), str(files[0]), str(tmp_path / "out.csv")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    with killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"50\n"
        children = psutil.Process(killed.pid).children(recursive=True)
        assert len(children) >= 2
        os.kill(killed.pid, signal.SIGKILL)
    left = psutil.wait_procs(children, timeout=30)[1]
    for each in left:
        each.kill()
    assert not left
    assert not (tmp_path / "out.csv").exists()


def test_libsvm_files_are_predicted_as_sparse_rows_were_trained(tmp_path: Path) -> None:
    dense = np.where(RANDOM.random((300, 6)) < 0.4, RANDOM.normal(size=(300, 6)), 0.0).astype(np.float32)
    rows = csr_matrix(dense)
    model = xgboost.train({"nthread": 1, "max_depth": 3}, xgboost.DMatrix(rows, dense[:, 0] - dense[:, 5]), 5)
    scorer = BoosterScorer(raw=bytes(model.save_raw("ubj")))
    expected = model.predict(xgboost.DMatrix(rows))
    files = [libsvm(tmp_path / "one.libsvm", rows[:200], 1), libsvm(tmp_path / "two.svm", rows[200:], 1)]
    assert predict_files(scorer, files, tmp_path / "out.csv", workers=1, first_index=1, batch_rows=64) == 300
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["prediction"], expected, rtol=1e-6)

    # Without the column 0 in any row, the numbering is that of the files which the model was trained on.
    rest = rows[:50].copy()
    rest.data[rest.indices == 0] = 0.0
    rest.eliminate_zeros()
    inner = rest[:, :5].copy()
    inner.resize((50, 6))
    predict_files(scorer, [libsvm(tmp_path / "z.libsvm", inner, 0)], tmp_path / "z.parquet", workers=1, first_index=0)
    found = pd.read_parquet(tmp_path / "z.parquet")["prediction"]
    np.testing.assert_array_equal(found, model.predict(xgboost.DMatrix(inner)))


def test_text_labels_and_their_probabilities_are_written(tmp_path: Path) -> None:
    rows = pd.DataFrame({"since": ["2024-01-31", "2024-03-01"] * 30, "active": ["True", "False"] * 30})
    matrix = xgboost.DMatrix(pd.DataFrame({"since": [19753.0, 19783] * 30, "active": [1.0, 0] * 30}), [1, 0] * 30)
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 5)
    note_preparation(model, {"target": "y", "classes": ["no", "yes"], "dates": ["since"]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    scorer = BoosterScorer(raw=bytes(model.save_raw("ubj")))
    for name, read in (("out.csv", pd.read_csv), ("out.parquet", pd.read_parquet)):
        assert predict_files(scorer, [tmp_path / "rows.csv"], tmp_path / name, workers=1) == 60
        found = read(tmp_path / name)
        assert found["prediction"].tolist() == ["yes", "no"] * 30
        np.testing.assert_allclose(found["probability_yes"], model.predict(matrix), rtol=1e-5)
