"""Whole tuning jobs in this process: the answer of the cluster, and no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.in_hand import Answer, answer
from tests.support.lines import line_with


@pytest.fixture(scope="module")
def in_hand(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return answer(0, tmp_path_factory.mktemp("hand"))


def test_it_says_that_trials_run_one_after_another(in_hand: Answer) -> None:
    line_with(in_hand.printed, "num_workers=0", "2")
    assert sum(in_hand.resources.values()) == 334 + 30


def test_more_threads_decide_alike(in_hand: Answer, tmp_path: Path) -> None:
    threaded = answer(0, tmp_path, threads=2)
    assert (threaded.resources, threaded.best) == (in_hand.resources, in_hand.best)
    assert threaded.values == pytest.approx(in_hand.values, abs=1e-3)
