"""Both sides of the one-process benchmark on generated rows, and what is made of their times."""

from pathlib import Path

import pytest

from experiments.one_process import TRIALS, OneProcess, Run, compare, target
from trainers.datasets import load


def run(milliseconds: float, rounds: int = 100) -> Run:
    return Run(seconds=milliseconds * rounds / 1000, rounds=rounds, best=0.7)


def test_the_ratio_is_by_rounds_the_median_of_pairs_against_the_faster_matrix():
    measured = OneProcess(
        threads=2,
        here=[run(4, 364), run(6, 364), run(90, 364)],
        optuna={"QuantileDMatrix": [run(4), run(5), run(80)], "DMatrix": [run(5), run(9), run(10)]},
    )
    assert measured.ratio_to("QuantileDMatrix") == pytest.approx(90 / 80)
    assert measured.ratio_to("DMatrix") == pytest.approx(0.8)
    assert (measured.matrix, measured.ratio) == ("QuantileDMatrix", pytest.approx(1.125))
    assert target(measured).kept
    assert not target(OneProcess(threads=2, here=[run(8)], optuna={"DMatrix": [run(5)]})).kept


@pytest.mark.process  # For its time: both train for seconds.
def test_both_sides_train(tmp_path: Path):
    """Each trains 30 trials; the job here uses its plan and the un-tuned run."""
    measured = compare(load("bank-marketing-synthetic"), str(tmp_path), repeats=1, threads=1)
    assert measured.here[0].rounds == 334 + 30
    for runs in measured.optuna.values():
        assert TRIALS <= runs[0].rounds < 30 * TRIALS
        # The same configurations, and more or less the same winner.
        assert runs[0].best == pytest.approx(measured.here[0].best, abs=0.02)
