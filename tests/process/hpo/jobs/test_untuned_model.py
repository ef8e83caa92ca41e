"""The model of an un-tuned run that is better than all trials, by the doors that start processes."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from hpo import HyperparameterTuner
from tests.support.driving import CHANNELS, FRAME
from tests.support.untuned import bad, url


def test_files_are_predicted_by_it(tmp_path: Path) -> None:
    tuner = bad(tmp_path)
    tuner.fit(CHANNELS, job_name="job")
    assert tuner.best_training_job() == "untuned"
    FRAME.drop(columns="y").to_csv(tmp_path / "rows.csv", index=False)
    attached = HyperparameterTuner.attach("job", store=url(tmp_path))
    assert attached.predict([tmp_path / "rows.csv"], tmp_path / "out.csv") == len(FRAME)
    scores = pandas.read_csv(tmp_path / "out.csv").to_numpy().ravel()
    own = tuner.best_estimator().model().inplace_predict(FRAME.drop(columns="y"))
    assert scores == pytest.approx(own, abs=1e-5)
