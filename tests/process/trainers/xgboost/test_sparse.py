"""Sparse rows through XGBoost: one worker trains what it does by hand, and three learn what one does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from ray.train import ScalingConfig
from sklearn.datasets import dump_svmlight_file

from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.trainers.xgboost.sparse import BINARY, CASES, PART, ROWS, Case, X, Y, order, program
from trainers import XGBoostTrainer, storage
from trainers.channels import open_channels
from trainers.gangs.messages import Segment


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
