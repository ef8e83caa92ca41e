"""Autotune: what is chosen for a job, said, recorded and found again; and names to keep static that are none."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from hpo import (
    HyperparameterTuner,
)
from hpo.jobs import JobSettings
from hpo.record import Store
from tests.support.boosting import CHANNELS
from tests.support.hpo.autotune import boosting, make
from tests.support.refusals import mentions, missing_names


def test_it_is_printed_recorded_described_and_attached_to(tmp_path: Path) -> None:
    store, out = f"sqlite:///{tmp_path}/record.db", io.StringIO()
    trainer = boosting(num_round=9)
    options = {"max_jobs": 3, "random_seed": 1, "store": store, "storage_path": str(tmp_path / "jobs")}
    tuner = make(trainer, console=Console(file=out, width=200), hyperparameters_to_keep_static=["subsample"], **options)
    tuner.fit(CHANNELS, job_name="chosen")
    printed = mentions(out.getvalue(), "Autotune").splitlines()
    assert any(not missing_names(line, "eta", "0.1", "0.5", "logarithmic") for line in printed)
    assert tuner.describe()["Autotune"] == {"Mode": "Enabled"}
    again = HyperparameterTuner.attach("chosen", store=store)
    for name in ("ranges", "max_jobs", "hyperparameters_to_keep_static"):
        assert getattr(again, name) == getattr(tuner, name)
    assert again.autotune == tuner.autotune
    assert again.settings.strategy_name == tuner.settings.strategy_name
    child = again.identical_dataset_and_algorithm_tuner()
    assert child.ranges == tuner.ranges
    with Store(store) as record:
        spec = record.job("chosen").spec
        del spec["autotune"], spec["hyperparameters_to_keep_static"]
        assert JobSettings.of(record.job("chosen"), allow_code=False).autotune == tuner.autotune
