"""A job whose Ray Train function never reads its checkpoints: its units are those that were trained."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from tests.support.refusals import mentions
from tests.support.unread_checkpoints import ray_trainer


def test_the_best_value_is_that_of_its_units_and_the_job_says_what_pauses_cost(tmp_path: Path) -> None:
    printed = io.StringIO()
    tuner = HyperparameterTuner(
        ray_trainer,
        "epochs_trained",
        {"lr": ContinuousParameter(0.0001, 0.05, "Logarithmic")},
        strategy="Hyperband",
        max_jobs=9,
        random_seed=1,
        storage_path=str(tmp_path),
        store=f"sqlite:///{tmp_path}/store.db",
        console=Console(file=printed, width=160),
    )
    tuner.fit(job_name="unread")
    rows = tuner.analytics().dataframe()
    assert (rows.FinalObjectiveValue == rows.Resource).all()
    assert rows.Resource.max() == 9
    text = printed.getvalue()
    mentions(text, "ray.train.get_checkpoint()")
    assert text.count("units again") + text.count("unit again") == 1
