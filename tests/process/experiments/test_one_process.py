"""Both sides of the one-process benchmark on generated rows, and what is made of their times."""

from pathlib import Path

import pytest

from experiments.one_process import TRIALS, compare
from trainers.datasets import load


@pytest.mark.process  # For its time: both train for seconds.
def test_both_sides_train(tmp_path: Path):
    """Each trains 30 trials; the job here uses its plan and the un-tuned run."""
    measured = compare(load("bank-marketing-synthetic"), str(tmp_path), repeats=1, threads=1)
    assert measured.here[0].rounds == 334 + 30
    for runs in measured.optuna.values():
        assert TRIALS <= runs[0].rounds < 30 * TRIALS
        # The same configurations, and more or less the same winner.
        assert runs[0].best == pytest.approx(measured.here[0].best, abs=0.02)
