"""A job as a study of Optuna: the same trials, the same best, and what optuna-dashboard shows of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import optuna
import pytest
import sqlalchemy as sa
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from hpo.export import study as module, to_optuna
from hpo.record.store import JobRow, Store
from tests.support.hpo.export.files import (
    store,  # noqa: F401  # A fixture.
    url,
)
from tests.support.hpo.export.study import best_of, goal, trials_of
from tests.support.recorded import METRIC, RANGES, STARTED, record, spec
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError, WarmbandError


def check(study: optuna.Study, store: Store, name: str = "job") -> None:
    """The study holds what the store does."""
    rows = trials_of(store, name)
    states = {"Completed": TrialState.COMPLETE, "Stopped": TrialState.PRUNED}
    best = best_of(store, name)
    assert study.metric_names == [METRIC]
    assert [trial.number for trial in study.trials] == [row.number for row in rows]
    for trial, row in zip(study.trials, rows, strict=True):
        wins = row.trial_id == best["TrainingJobName"]
        assert trial.state is (TrialState.COMPLETE if wins else states.get(row.status, TrialState.FAIL))
        assert trial.value == row.objective
        expected = {key: json.dumps(v) if key == "like one" else v for key, v in row.hyperparameters.items()}
        assert trial.params == expected
        assert trial.user_attrs["status"] == row.status
        assert trial.datetime_start.timestamp() == row.started_at
        assert trial.datetime_complete.timestamp() == row.ended_at
        curve = {report.step: report.metrics[METRIC] for report in store.reports(name, row.trial_id)}
        assert json.dumps(trial.intermediate_values) == json.dumps(curve)
    assert study.best_trial.user_attrs["trial_id"] == best["TrainingJobName"]
    assert study.best_value == best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]


def test_a_study_holds_what_the_store_does(store: Store, tmp_path: Path) -> None:
    check(to_optuna("job", goal(tmp_path), store=url(tmp_path)), store)
    study = optuna.load_study(study_name="job", storage=goal(tmp_path))
    assert math.isnan(study.trials[2].intermediate_values[4])
    assert study.trials[0].user_attrs["worker_seconds"] == 0.0
    assert study.trials[1].user_attrs["failure"].startswith("ValueError")
    assert study.user_attrs["untuned"] == 0.7
    assert study.user_attrs["worker_seconds"] == {"training": 6.0}
    assert study.user_attrs["cost"] == {"total": 0.5}


def test_its_rows_are_those_that_optuna_itself_would_write(store: Store, tmp_path: Path) -> None:
    """Through Optuna's own calls, which its other storages get, the same study comes out."""
    there = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(f"{tmp_path}/journal"))
    by_optuna = to_optuna("job", there, store=url(tmp_path))
    ours = to_optuna("job", goal(tmp_path), store=url(tmp_path))
    check(by_optuna, store)
    for one, other in zip(ours.trials, by_optuna.trials, strict=True):
        for field in ("number", "state", "value", "params", "distributions", "user_attrs", "system_attrs"):
            assert getattr(one, field) == getattr(other, field)


def test_a_study_can_be_gone_on_with(store: Store, tmp_path: Path) -> None:
    """The distributions are those of the ranges, so Optuna's sampler learns from the trials."""
    study = to_optuna("job", goal(tmp_path), store=url(tmp_path))
    assert study.trials[0].distributions == {
        "eta": FloatDistribution(0.001, 1, log=True),
        "decay": FloatDistribution(0.1, 0.99),
        "alpha": FloatDistribution(0, 2),
        "max_depth": IntDistribution(1, 10),
        "batch": IntDistribution(1, 10_000, log=True),
        "booster": CategoricalDistribution(["gbtree", "dart", None]),
        "like one": CategoricalDistribution(["1", "true", '"1"', "1.5"]),
    }
    asked = study.ask(study.trials[0].distributions)
    study.tell(asked, 0.5)
    assert RANGES["eta"].is_valid(asked.params["eta"])


def test_the_least_is_best_where_it_is_minimised(tmp_path: Path) -> None:
    with Store(url(tmp_path)) as store:
        record(store, "job", 30, objective_type="Minimize", objective_value="best")
        study = to_optuna("job", goal(tmp_path), store=url(tmp_path))
        best = best_of(store)
    assert study.best_trial.user_attrs["trial_id"] == best["TrainingJobName"]
    assert study.best_value == best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]


def test_a_running_job_has_running_trials(tmp_path: Path) -> None:
    with Store(url(tmp_path)) as store:
        record(store, "job", 8, ended=False)
        with store.writer("job"):  # Its heartbeat.
            study = to_optuna("job", goal(tmp_path), store=url(tmp_path))
    assert [trial.state for trial in study.trials][1:5] == [
        TrialState.FAIL,
        TrialState.FAIL,
        TrialState.RUNNING,
        TrialState.PRUNED,
    ]


def test_what_a_job_that_broke_off_left_has_ended_with_it(tmp_path: Path) -> None:
    with Store(url(tmp_path)) as store:
        record(store, "job", 8, ended=False)
        with store.writer("job") as writer:
            writer.job(status="Failed", reason="every gang was lost", ended_at=STARTED + 50)
        study = to_optuna("job", goal(tmp_path), store=url(tmp_path))
        best = best_of(store)
    assert study.user_attrs["status"] == "Failed"
    assert study.trials[3].state is TrialState.PRUNED
    assert study.trials[3].datetime_complete.timestamp() == STARTED + 50
    assert study.best_trial.user_attrs["trial_id"] == best["TrainingJobName"]


def test_a_job_without_trials_is_a_study_without_trials(tmp_path: Path) -> None:
    with Store(url(tmp_path)) as store:
        failed = JobRow(name="job", created_at=1.0, status="Failed", reason="no gang", spec=spec())
        store.create_job(failed)
    study = to_optuna("job", goal(tmp_path), store=url(tmp_path))
    assert study.trials == []
    assert study.user_attrs["reason"] == "no gang"


def test_a_study_that_is_there_is_left_as_it_is(store: Store, tmp_path: Path) -> None:
    optuna.create_study(study_name="job", storage=goal(tmp_path)).set_user_attr("whose", "mine")
    remedy = ("storage", f"optuna delete-study --study-name job --storage {goal(tmp_path)}")
    with refuses(ConfigurationError, field="study", value="'job'", remedy=remedy):
        to_optuna("job", goal(tmp_path), store=url(tmp_path))
    assert optuna.load_study(study_name="job", storage=goal(tmp_path)).user_attrs == {"whose": "mine"}


def test_the_record_itself_is_no_place_for_a_study(store: Store, tmp_path: Path) -> None:
    with refuses(ConfigurationError, field=url(tmp_path), value="tables", remedy=("Optuna", "database")):
        to_optuna("job", url(tmp_path), store=url(tmp_path))
    tables = sa.inspect(sa.create_engine(url(tmp_path))).get_table_names()
    ours = ["acts", "additions", "jobs", "ledger", "lines", "reports", "schema_version", "trials", "warmband_version"]
    assert sorted(tables) == ours


def test_a_study_that_cannot_be_written_whole_is_not_there(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = module._rows
    monkeypatch.setattr(module, "_rows", lambda trial: [*rows(trial), ("trial_values", {"objective": None})])
    with refuses(WarmbandError, field="study", value="'job'", remedy=goal(tmp_path)):
        to_optuna("job", goal(tmp_path), store=url(tmp_path))
    assert optuna.get_all_study_names(goal(tmp_path)) == []


@pytest.mark.parametrize(
    ("storage", "value"),
    [
        ("study.db", "'study.db'"),
        ("sqlite:////no/such/folder/study.db", "sqlite:////no/such/folder/study.db"),
        ("nosuch://me:secret@host/db", "nosuch://***@host/db"),
    ],
)
def test_a_storage_that_is_none(store: Store, tmp_path: Path, storage: str, value: str) -> None:
    with refuses(ConfigurationError, field="storage", value=value, remedy="sqlite:///study.db") as caught:
        to_optuna("job", storage, store=url(tmp_path))
    assert "secret" not in str(caught.value)


def test_many_trials_are_written_in_as_few_statements_as_few(tmp_path: Path) -> None:
    """Optuna's own calls would take a few for every value of every trial, and so many minutes for a thousand."""
    sent: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        sent.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        with Store(url(tmp_path)) as store:
            counts = {}
            for name, trials in (("first", 8), ("few", 8), ("many", 300)):
                record(store, name, trials, 12)
                sent.clear()
                study = to_optuna(name, goal(tmp_path), store=url(tmp_path))
                counts[name] = len(sent)
            reports = len(store.reports("many")) - 1
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert sum(len(trial.intermediate_values) for trial in study.trials) == reports > 2_000
    # The first has made the database too.
    assert 0 < counts["few"] == counts["many"] < counts["first"]
