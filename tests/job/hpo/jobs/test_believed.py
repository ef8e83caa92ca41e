"""What a search's model expected of its trials when it suggested them: kept in the record, once and for all."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.export import to_parquet
from hpo.record.store import Store, TrialRow
from hpo.strategies import ModelSearch
from tests.support import driving
from tests.support.driving import CHANNELS, Counting
from tests.support.listed import hpo


def tuner(folder: Path, callbacks: Any = (), **options: Any) -> HyperparameterTuner:
    """A search with a model, of trials that run to their end."""
    made = driving.tuner(folder, callbacks, **{"max_jobs": 14, **options})
    nine = made.settings.estimator.with_hyperparameters({"num_round": 9})
    made.settings = made.settings.changed(strategy="Bayesian", strategy_config=None, estimator=nine)
    return made


def trials(folder: Path, name: str = "job") -> list[TrialRow]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return [row for row in store.trials(name) if row.number >= 0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder).fit(CHANNELS, job_name="job")
    return folder


def test_the_record_says_of_each_trial_whether_a_model_suggested_it_and_what_it_expected(whole: Path) -> None:
    rows = trials(whole)
    asked = [row.believed["by"] for row in rows]
    first = asked.index("model")
    assert asked == ["random"] * first + ["model"] * (14 - first)
    assert first > 2
    for row in rows[first:]:
        seen = [each.objective or 0.0 for each in rows[: row.number]]
        believed = row.believed
        assert believed["results"] <= row.number
        assert min(seen) <= believed["low"] <= believed["middle"] <= believed["high"] <= max(seen)
        assert 0 < believed["deviation"] <= believed["spread"]


def test_a_resumed_job_has_it_as_it_was_and_asks_no_model_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = Counting(90, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        tuner(tmp_path, (interrupted,)).fit(CHANNELS, job_name="job")
    before = {row.number: row.believed for row in trials(tmp_path)}
    assert {each["by"] for each in before.values()} == {"random", "model"}
    assert len(before) < 14
    asked: list[int] = []
    compute = ModelSearch.compute
    monkeypatch.setattr(ModelSearch, "compute", lambda self, number: (asked.append(number), compute(self, number))[1])
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").resume(inputs=CHANNELS)
    assert min(asked) == len(before)
    assert [row.believed for row in trials(tmp_path)] == [row.believed for row in trials(whole)]


def test_values_that_a_person_gives_are_not_what_a_model_expected(tmp_path: Path) -> None:
    tuner(tmp_path, points_to_evaluate=[{"eta": 0.3}]).fit(CHANNELS, job_name="job")
    first, second, *_ = trials(tmp_path)
    assert (first.given, first.believed, second.believed) == ("point", {}, {"by": "random"})


def test_every_repeat_of_a_configuration_has_it(tmp_path: Path) -> None:
    made = tuner(tmp_path, repeats=2, max_jobs=24)
    made.fit(CHANNELS, job_name="job")
    rows = trials(tmp_path)
    assert [row.believed for row in rows[::2]] == [row.believed for row in rows[1::2]]
    assert rows[-1].believed["by"] == "model"


def test_it_goes_out_by_every_door(whole: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{whole}/record.db"
    rows = {row.trial_id: row.believed for row in trials(whole)}
    listed = json.loads(hpo("trials", "job", "--json", "--store", store))
    assert {each["TrainingJobName"]: each["Believed"] for each in listed} == rows
    best = HyperparameterTuner.attach("job", store=store).describe()["BestTrainingJob"]
    assert best["Believed"] == rows[best["TrainingJobName"]]
    from pyarrow import parquet

    to_parquet("job", tmp_path / "out", store=store)
    table = parquet.read_table(tmp_path / "out" / "trials.parquet").to_pylist()
    assert {row["trial_id"]: json.loads(row["believed"]) for row in table if row["number"] >= 0} == rows
