"""Early stopping by rounds, and the best round's model: as `xgboost.train` has them, however a trial is cut up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.process_gang import ProcessGang
from tests.support.trainers.xgboost.best_round import ROUNDS, make, order, served


def test_workers_end_in_the_round_of_one(gang: ProcessGang, tmp_path: Path) -> None:
    [alone] = served(order(tmp_path / "one"))
    first = order(tmp_path / "three", stop=9)
    second = order(tmp_path / "three", start=9, stop=ROUNDS, checkpoint=first.save_to)
    answers = gang.run(make(), first, second)
    reports = [[*one.reports, *two.reports] for one, two in answers]
    assert reports == [reports[0]] * 3
    for mine, one in zip(reports[0], alone.reports, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-4)
