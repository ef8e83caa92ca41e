"""Commands about a single training, from its job file to its deletion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hpo.job_file import json_schema, read_any, read_job, read_training
from hpo.record.store import Store
from tests.support import yaml_text
from tests.support.command import run
from tests.support.hpo.cli.training_commands import file  # noqa: F401  # A fixture.
from tests.support.job_files import change
from tests.support.listed import hpo, job as recorded
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError


def test_from_its_file_to_its_deletion(
    file: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "train", str(file), "--dry-run") == 0
    mentions(capsys.readouterr().out, "6 rounds", "checkpoint", "2 rounds")
    assert store.jobs() == []
    assert run(monkeypatch, "train", str(file), "--name", "solo", "--json") == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["TrainingJobName"], described["TrainingJobStatus"]) == ("solo", "Completed")
    assert described == json.loads(hpo("describe", "solo", "--json"))
    page = hpo("describe", "solo", columns=160)
    mentions(page, "6 rounds", "completed", "validation:auc")
    [checkpoints] = [line for line in page.splitlines() if line.strip().startswith("checkpoints")]
    mentions(checkpoints, 3, "2 rounds")
    assert "solo-000" in hpo("trials", "solo", columns=160)
    assert [line for line in hpo("logs", "solo").splitlines() if "checkpoint" in line and "4 rounds" in line]
    assert "6 rounds" in hpo("forecast", str(file), columns=400)
    mentions(hpo("resume", "solo"), "solo", "Completed")
    mentions(hpo("stop", "solo"), "solo", "Completed")
    mentions(hpo("trials", "add", "solo", "--set", "eta=0.1", code=2), "solo", "training")
    study = f"sqlite:///{tmp_path}/study.db"
    mentions(hpo("export", "solo", "--format", "optuna", "-o", study, code=2), "solo", "Optuna", "parquet", "csv")
    hpo("export", "solo", "--format", "csv", "-o", str(tmp_path / "tables"), columns=400)
    assert len((tmp_path / "tables" / "reports.csv").read_text().splitlines()) == 1 + 6
    hpo("delete", "solo", "--yes", columns=400)
    assert store.jobs() == []


def test_its_page_has_its_curve_and_nothing_that_compares_trials(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, store: Store
) -> None:
    assert run(monkeypatch, "train", str(file)) == 0
    capsys.readouterr()
    pictures, page = tmp_path / "pictures", tmp_path / "page.html"
    printed = hpo("report", "tiny", "-o", str(page), "--pictures", str(pictures), columns=400)
    mentions(printed, "validation:auc", str(page))
    assert sorted(path.name for path in pictures.glob("*.svg")) == ["cost.svg", "learning-curves.svg"]
    text = page.read_text()
    mentions(text, "XGBoostTrainer", "TrainingJob.attach")
    assert "un-tuned" not in text.partition("<script")[0]


def test_jobs_are_listed_by_their_kind(file: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    recorded(store, "search", values=[0.5])
    assert run(monkeypatch, "train", str(file)) == 0
    assert {each["Kind"] for each in json.loads(hpo("jobs", "--json"))} == {"tuning", "training"}
    for kind, name in (("tuning", "search"), ("training", "tiny")):
        (listed,) = json.loads(hpo("jobs", "--kind", kind, "--json"))
        assert listed["HyperParameterTuningJobName"] == name


def test_a_tuning_jobs_file_is_trained_once_its_values_are_there(
    job: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    change(job, "trainer.num_workers", 0)
    change(job, "trainer.hyperparameters.num_round", 3)
    with refuses(ConfigurationError, field="eta", remedy="trainer.hyperparameters"):
        read_training(job).settings()
    assert run(monkeypatch, "train", str(job), "--set", "trainer.hyperparameters.eta=0.2") == 0
    row = store.job("tiny")
    assert (row.spec["random_seed"], row.spec["objective_metric_name"]) == (1, "validation:auc")
    assert row.spec["estimator"]["hyperparameters"]["eta"] == 0.2
    change(job, "tuning.ranges", {})
    assert read_training(job).settings().objective_metric_name == "validation:auc"
    with refuses(ConfigurationError, field="ranges", remedy="autotune"):
        read_job(job)


def test_a_file_is_of_a_training_where_it_has_no_group_tuning(file: Path, tmp_path: Path) -> None:
    assert type(read_any(file)).__name__ == "TrainingSpec"
    with refuses(ConfigurationError, field=("line", "training"), remedy=("hpo train", "tuning")):
        read_job(file)
    state = yaml_text.load(file.read_text())
    jsonschema.Draft202012Validator(json_schema(training=True)).validate(state)
    assert hpo("schema", "--training") != hpo("schema")


WRONG = [
    ("training.checkpoint_every", 0, ("training.checkpoint_every", 0, 1)),
    ("training.max_jobs", 3, ("training.max_jobs",)),
    ("training.objective_metric_name", "validation:rmse", ("objective_metric_name", "validation:rmse")),
    ("training.objective_value", "best", ("objective_metric_name",)),
    ("trainer.hyperparameters.num_round", None, ("hyperparameters", "num_round")),
    ("trainer.hyperparameters.num_rund", 3, ("num_rund", "num_round")),
    ("num_to_keep", 3, ("num_to_keep",)),
    ("tuning", {"objective_metric_name": "validation:auc"}, ("training", "tuning")),
]


@pytest.mark.parametrize(("keys", "value", "names"), WRONG, ids=[keys for keys, _, _ in WRONG])
def test_what_is_wrong_is_said_with_its_line(file: Path, keys: str, value: Any, names: tuple[object, ...]) -> None:
    change(file, keys, value)
    with refuses(ConfigurationError, field=str(file)) as error:
        read_training(file).settings()
    mentions(str(error.value), *names)
