"""Sparse rows through XGBoost: one worker trains what it does by hand, and three learn what one does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost
from ray.train import ScalingConfig
from sklearn.datasets import dump_svmlight_file

from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, serve_alone
from trainers import Channel, XGBoostTrainer, storage
from trainers.channels import open_channels
from trainers.gangs.messages import Assignment, Segment

RANDOM = np.random.default_rng(5)
ROWS = 600
X = sp.random(ROWS, 12, 0.4, "csr", np.float32, random_state=RANDOM)
X.data[:] = RANDOM.integers(0, 6, X.nnz)  # Zeros among them.
SIGNAL = X.toarray()[:, 0] - X.toarray()[:, 1] + 2 * (X[:, [2]].toarray()[:, 0] > 0) + RANDOM.normal(size=ROWS)
Y = (SIGNAL > 0.5).astype(np.float32)
W = RANDOM.gamma(2.0, size=ROWS).astype(np.float32)
BINARY = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc", "aucpr"], "max_depth": 4}

Case = tuple[dict[str, Any], dict[str, Any]]
CASES: list[Case] = [
    ({}, BINARY),
    ({"weight": W}, {**BINARY, "tree_method": "approx"}),
    ({"qid": np.repeat(np.arange(75), 8)}, {"objective": "rank:ndcg", "eval_metric": ["ndcg@3"]}),
    ({}, {"objective": "binary:logistic", "eval_metric": ["logloss"], "booster": "gblinear"}),
]
PART = slice(96, 496)


def program(case: Case, **more: Any) -> Callable[[], Any]:
    said, hyperparameters = case

    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**hyperparameters, **more})
        parts = {"train": slice(None), "validation": PART}
        opened = trainer.checked(
            {
                name: Channel.of((X[part], Y[part], {role: of[part] for role, of in said.items()}), name=name)
                for name, part in parts.items()
            }
        )
        return trainer.program({name: channel.place(0) for name, channel in opened.items()})

    return make


def order(folder: Path, case: Case, **more: Any) -> Assignment:
    return assignment(hyperparameters={**case[1], **more}, stop=4, save_to=str(folder / "4.ubj"))


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


@pytest.mark.process
@pytest.mark.parametrize("case", CASES[:3])
def test_three_workers_learn_what_one_does(gang: ProcessGang, tmp_path: Path, case: Case) -> None:
    answers = gang.run(program(case), order(tmp_path / "three", case))
    segments = [answer for [answer] in answers]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 3
    [alone] = serve_alone(program(case)(), order(tmp_path / "one", case))
    for mine, one in zip(segments[0].reports, alone.reports, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-4)
    three, one = (
        xgboost.Booster({"nthread": 1}, model_file=bytearray(storage.read(segment.checkpoint)))
        for segment in (segments[0], alone)
    )
    rows = xgboost.DMatrix(X)
    np.testing.assert_allclose(three.predict(rows), one.predict(rows), rtol=1e-4)


@pytest.mark.process
def test_three_workers_learn_from_libsvm_files_what_one_does_from_memory(gang: ProcessGang, tmp_path: Path) -> None:
    folders = {"train": slice(None), "validation": PART}
    for name, part in folders.items():
        (tmp_path / name).mkdir()
        for number, rows in enumerate(np.array_split(np.arange(ROWS)[part], 4)):
            dump_svmlight_file(X[rows], Y[rows], str(tmp_path / name / f"{number}.libsvm"), zero_based=False)

    def program(from_files: bool) -> Callable[[], Any]:
        parts = {name: (X[part], Y[part]) for name, part in folders.items()}

        def make() -> Any:
            trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=BINARY)
            sources: dict[str, Any] = {name: str(tmp_path / name) for name in parts} if from_files else parts
            opened = trainer.checked(open_channels(sources))
            return trainer.program({name: channel.place(0) for name, channel in opened.items()})

        return make

    answers = gang.run(program(from_files=True), order(tmp_path / "three", CASES[0]))
    [alone] = serve_alone(program(from_files=False)(), order(tmp_path / "one", CASES[0]))
    for [answer] in answers:
        assert isinstance(answer, Segment), answer
        assert answer.reports[-1].metrics == pytest.approx(alone.reports[-1].metrics, rel=1e-4)


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
