"""Sparse rows through XGBoost: one worker trains what it does by hand, and three learn what one does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.process_gang import serve_alone
from tests.support.trainers.xgboost.sparse import BINARY, CASES, PART, ROWS, Case, X, Y, order, program
from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Segment


@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[3]])
def test_one_worker_trains_what_xgboost_does_by_hand(tmp_path: Path, case: Case) -> None:
    exact = {} if "booster" in case[1] else {"tree_method": "exact"}
    [segment] = serve_alone(program(case, **exact)(), order(tmp_path, case, **exact))
    assert isinstance(segment, Segment), segment
    matrices = [
        xgboost.DMatrix(X[part], Y[part], **{role: of[part] for role, of in case[0].items()})
        for part in (slice(None), PART)
    ]
    by_hand: dict[str, dict[str, list[float]]] = {}
    told = {**case[1], **exact, "nthread": 1}
    xgboost.train(told, matrices[0], 4, evals=[(matrices[1], "v")], evals_result=by_hand, verbose_eval=False)
    for name, values in by_hand["v"].items():
        found = [report.metrics[f"validation:{name}"] for report in segment.reports]
        assert found == pytest.approx(values, rel=1e-5)


def test_what_is_absent_is_missing_and_an_explicit_0_is_0(tmp_path: Path) -> None:
    """As where the same rows are given dense, with NaN for what is absent."""
    dense = np.full(X.shape, np.nan, np.float32)
    for row in range(ROWS):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        dense[row, X.indices[entries]] = X.data[entries]
    [sparse] = serve_alone(program(CASES[0])(), order(tmp_path / "sparse", CASES[0]))
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=BINARY)
    channels = {"train": (dense, Y), "validation": (dense[PART], Y[PART])}
    made = trainer.program({name: Channel.of(rows, name=name).place(0) for name, rows in channels.items()})
    [with_nan] = serve_alone(made, order(tmp_path / "dense", CASES[0]))
    assert [report.metrics for report in sparse.reports] == [report.metrics for report in with_nan.reports]
    zeros = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=BINARY).program(
        {
            "train": Channel.of((X.toarray(), Y)).place(0),
            "validation": Channel.of((X.toarray()[PART], Y[PART])).place(0),
        }
    )
    [with_zeros] = serve_alone(zeros, order(tmp_path / "zeros", CASES[0]))
    assert with_zeros.reports != sparse.reports
