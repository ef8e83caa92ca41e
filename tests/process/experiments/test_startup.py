"""What the start-up benchmark makes of its measurements, and its job in one process; no Ray."""

from pathlib import Path

import pytest
from ray.train import ScalingConfig

from experiments.baselines.optuna_trials import with_optuna
from experiments.workloads.small_job import TRIALS
from experiments.workloads.warm_gangs import TINY_ASSIGNMENTS, starts_in_hand, warm_job
from trainers.datasets import load


@pytest.mark.process  # For its time: both train for seconds.
def test_one_process_does_the_same_trials_here_and_with_optuna(tmp_path: Path):
    data = load("bank-marketing-synthetic")
    job, trials = warm_job(data, str(tmp_path), ScalingConfig(num_workers=0))
    plain = with_optuna(data, trials, threads=1)
    assert len(trials) == len(plain.starts) == len(plain.objectives) == TRIALS
    assert plain.objectives == pytest.approx(job.objectives, abs=1e-6)
    assert 0 < job.first_step < job.job
    assert 0 < plain.first_step < plain.job
    starts = starts_in_hand(data, str(tmp_path), threads=1)
    assert len(starts) == TINY_ASSIGNMENTS
    assert min(*starts, *plain.starts) > 0
