"""One check behind every door: what a command, Python, REST, the console and SageMaker's API say of a wrong job."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray.train import ScalingConfig
from starlette.testclient import TestClient

from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.record import Store
from hpo.serve import Keys, ServeSettings, Tokens, make_app, starting
from hpo.serve.aws.creating import jobs as creating
from hpo.serve.security import guard
from tests.support.command import run
from tests.support.hpo.serve.aws.signed import Door, in_this_process
from tests.support.listed import job as recorded
from tests.support.moto_s3 import moto_s3, s3_client
from tests.support.rows import sqlite_url
from trainers import WarmbandError, XGBoostTrainer

Job = dict[str, Any]
PYTHON, SERVICE = "Python", "SageMaker"


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A wrong job.

    Args:
        change: values of a job file, by their keys with dots between them.
        says: what each door's error holds.
        service: what the error of SageMaker's API holds, where it names a field by another name.
        rows: of a channel, in place of the good ones.
    """

    change: Mapping[str, Any] = field(default_factory=dict)
    says: tuple[str, ...]
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def frame(**columns: Any) -> pd.DataFrame:
    """Twenty good rows, with other columns."""
    random = np.random.default_rng(0)
    good = {"label": [0, 1] * 10, "age": random.normal(size=20).round(3), "size": random.normal(size=20).round(3)}
    return pd.DataFrame({**good, **columns})


HYPERPARAMETERS = "trainer.hyperparameters."
RANGES = "tuning.ranges."
WRONG = {
    "no trials": Wrong(
        change={"tuning.max_jobs": 0}, says=("max_jobs", "0"), elsewhere={SERVICE: ("maxNumberOfTrainingJobs", "0")}
    ),
    "none at once": Wrong(
        change={"tuning.max_parallel_jobs": 0},
        says=("max_parallel_jobs", "0"),
        elsewhere={SERVICE: ("maxParallelTrainingJobs", "0")},
    ),
    "no such metric": Wrong(change={"tuning.objective_metric_name": "validation:acu"}, says=("acu", "auc")),
    "no such channel": Wrong(change={"tuning.objective_metric_name": "test:auc"}, says=("test", "validation")),
    "ends before it begins": Wrong(
        change={RANGES + "eta.min": 0.7}, says=("eta", "0.7", "0.5"), elsewhere={PYTHON: ("Continuous", "0.7", "0.5")}
    ),
    "a logarithm of nothing": Wrong(
        change={RANGES + "eta.min": 0, RANGES + "eta.scaling": "Logarithmic"},
        says=("eta", "0", "logarithmic"),
        elsewhere={PYTHON: ("Continuous", "0", "logarithmic")},
    ),
    "out of bounds": Wrong(change={HYPERPARAMETERS + "subsample": 7}, says=("subsample", "7")),
    "a range out of bounds": Wrong(change={RANGES + "max_depth.min": -3}, says=("max_depth", "-3")),
    "no such objective": Wrong(
        change={HYPERPARAMETERS + "objective": "binary:logistics"}, says=("binary:logistics", "binary:logistic")
    ),
    "another booster": Wrong(change={HYPERPARAMETERS + "booster": "gbforest"}, says=("booster", "gbforest", "gbtree")),
    "no workers": Wrong(
        change={"trainer.num_workers": -1}, says=("num_workers", "-1"), elsewhere={SERVICE: ("instanceCount", "-1")}
    ),
    "more workers than rows": Wrong(change={"trainer.num_workers": 30}, says=("20 rows", "30")),
    "rungs the wrong way round": Wrong(
        change={"tuning.hyperband.min_resource": 20}, says=("min_resource", "20", "9"), elsewhere={SERVICE: ("20", "9")}
    ),
    "a name of other characters": Wrong(change={"name": "my job!"}, says=("my job!",)),
    "a name that is taken": Wrong(change={"name": "bank"}, says=("bank",)),
    "no file": Wrong(change={"data.channels.train.path": "gone.csv"}, says=("train", "gone.csv")),
    "text": Wrong(rows={"train": frame(age=["old"] * 20)}, says=("train",)),
    "no label": Wrong(rows={"train": frame(label=[np.nan] + [1, 0] * 9 + [1])}, says=("train", "label")),
    "a label that is no class": Wrong(rows={"train": frame(label=[2] * 10 + [0, 1] * 5)}, says=("train", "2")),
    "one class": Wrong(rows={"validation": frame(label=1)}, says=("validation", "1", "auc")),
    "another number of columns": Wrong(rows={"validation": frame(more=1.5)}, says=("validation", "columns")),
    "infinity": Wrong(rows={"train": frame(size=np.inf)}, says=("train", "inf")),
}


def good(folder: Path) -> Job:
    """The values of a job file that is right."""
    return {
        "name": "mine",
        "data": {
            "channels": {
                name: {"path": str(folder / name / "rows.csv"), "target": "label"} for name in ("train", "validation")
            }
        },
        "trainer": {
            "type": "xgboost",
            "num_workers": 2,
            "hyperparameters": {"objective": "binary:logistic", "eval_metric": "auc"},
        },
        "tuning": {
            "objective_metric_name": "validation:auc",
            "max_jobs": 6,
            "max_parallel_jobs": 2,
            "strategy": "Hyperband",
            "hyperband": {"min_resource": 1, "max_resource": 9},
            "ranges": {
                "eta": {"type": "continuous", "min": 0.1, "max": 0.5},
                "max_depth": {"type": "integer", "min": 2, "max": 6},
            },
        },
    }


def wrong_job(wrong: Wrong, folder: Path) -> Job:
    """A wrong job's values; its rows are written."""
    made = copy.deepcopy(good(folder))
    for keys, value in wrong.change.items():
        *groups, last = keys.split(".")
        inner = made
        for group in groups:
            inner = inner[group]
        inner[last] = str(folder / value) if last == "path" else value
    for name in ("train", "validation"):
        (folder / name).mkdir(exist_ok=True)
        wrong.rows.get(name, frame()).to_csv(folder / name / "rows.csv", index=False)
    return made


# ---- doors

ACCEPTED = "accepted"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A record, a server and a bucket that all doors use."""

    folder: Path
    store: str
    client: TestClient
    token: str
    service: Door
    bucket: Any
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def jobs(self) -> list[str]:
        """The names of the record's jobs."""
        with Store(self.store) as record:
            return [row.name for row in record.jobs()]


def paths(job: Job) -> dict[str, Path]:
    return {name: Path(each["path"]) for name, each in job["data"]["channels"].items()}


def by_command(job: Job, place: Place, *options: str) -> str:
    file = place.folder / "job.yaml"
    file.write_text(json.dumps(job))
    place.capture.readouterr()
    if run(place.patch, "tune", str(file), "--store", place.store, *options) == 0:
        return ACCEPTED
    told = place.capture.readouterr()
    return told.err + told.out


def by_dry_run(job: Job, place: Place) -> str:
    return by_command(job, place, "--dry-run")


def by_python(job: Job, place: Place) -> str:
    kinds: dict[str, Any] = {"continuous": ContinuousParameter, "integer": IntegerParameter}
    trainer, tuning = job["trainer"], job["tuning"]
    try:
        ranges = {
            name: kinds[each["type"]](each["min"], each["max"], each.get("scaling", "Auto"))
            for name, each in tuning["ranges"].items()
        }
        scaling = ScalingConfig(num_workers=trainer["num_workers"], resources_per_worker={"CPU": 1})
        HyperparameterTuner(
            XGBoostTrainer(scaling=scaling, hyperparameters=trainer["hyperparameters"]),
            tuning["objective_metric_name"],
            ranges,
            max_jobs=tuning["max_jobs"],
            max_parallel_jobs=tuning["max_parallel_jobs"],
            strategy_config=StrategyConfig(
                HyperbandStrategyConfig(
                    min_resource=tuning["hyperband"]["min_resource"], max_resource=tuning["hyperband"]["max_resource"]
                )
            ),
            strategy="Hyperband",
            store=place.store,
            console=False,
        ).fit(
            {name: pd.read_csv(path) if path.exists() else path for name, path in paths(job).items()},
            job["name"],
        )
    except (WarmbandError, ValueError) as error:  # Ray's own classes raise the latter.
        return str(error)
    return ACCEPTED


def by_rest(job: Job, place: Place, *, check: bool = False) -> str:
    query = "?dry_run=true" if check else ""
    answer = place.client.post(
        f"/api/jobs{query}", content=json.dumps(job), headers={"Authorization": f"Bearer {place.token}"}
    )
    return ACCEPTED if answer.is_success else str(answer.json()["error"]["message"])


def by_check(job: Job, place: Place) -> str:
    return by_rest(job, place, check=True)


def by_service(job: Job, place: Place) -> str:
    tuning, trainer = job["tuning"], job["trainer"]

    def bounds(kind: str) -> list[dict[str, str]]:
        return [
            {
                "Name": name,
                "MinValue": str(each["min"]),
                "MaxValue": str(each["max"]),
                "ScalingType": each.get("scaling", "Auto"),
            }
            for name, each in tuning["ranges"].items()
            if each["type"] == kind
        ]

    def channel(name: str, path: Path) -> dict[str, Any]:
        uri = f"s3://bucket/{name if path.exists() else path.name}"
        if path.exists():
            rows = pd.read_csv(path).to_csv(index=False, header=False)
            place.bucket.put_object(Bucket="bucket", Key=f"{name}/rows.csv", Body=rows)
        source = {"S3DataType": "S3Prefix", "S3Uri": uri}
        return {"ChannelName": name, "ContentType": "text/csv", "DataSource": {"S3DataSource": source}}

    rungs = tuning["hyperband"]
    request = {
        "HyperParameterTuningJobName": job["name"],
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {
                "HyperbandStrategyConfig": {"MinResource": rungs["min_resource"], "MaxResource": rungs["max_resource"]}
            },
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": tuning["objective_metric_name"]},
            "ResourceLimits": {
                "MaxNumberOfTrainingJobs": tuning["max_jobs"],
                "MaxParallelTrainingJobs": tuning["max_parallel_jobs"],
            },
            "ParameterRanges": {
                "ContinuousParameterRanges": bounds("continuous"),
                "IntegerParameterRanges": bounds("integer"),
            },
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
                "TrainingInputMode": "File",
            },
            "RoleArn": "arn:aws:iam::111122223333:role/anybody",
            "InputDataConfig": [channel(name, path) for name, path in paths(job).items()],
            "OutputDataConfig": {"S3OutputPath": "s3://bucket/models/"},
            "ResourceConfig": {
                "InstanceType": "ml.m5.xlarge",
                "InstanceCount": trainer["num_workers"],
                "VolumeSizeInGB": 10,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 600},
            "StaticHyperParameters": {name: str(value) for name, value in trainer["hyperparameters"].items()},
        },
    }
    answer = place.service.call("CreateHyperParameterTuningJob", json.dumps(request).encode())
    return ACCEPTED if answer.is_success else str(answer.json())


DOORS: dict[str, Callable[[Job, Place], str]] = {
    "command": by_command,
    "dry run": by_dry_run,
    PYTHON: by_python,
    "REST": by_rest,
    "console's check": by_check,
    SERVICE: by_service,
}


@pytest.fixture(scope="module")
def bucket_at() -> Iterator[str]:
    """The address of an S3 that has a bucket."""
    with moto_s3() as address:
        s3_client(address).create_bucket(Bucket="bucket")
        yield address


@pytest.fixture
def place(
    tmp_path: Path, bucket_at: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    """A record with a job, and a server that creates jobs in this process."""
    monkeypatch.setattr(starting, "ask", in_this_process)
    monkeypatch.setattr(creating, "ask", in_this_process)
    monkeypatch.setattr(
        starting.checks, "ask", lambda given, who, seconds: in_this_process("hpo.serve.starting", given, who)
    )
    monkeypatch.setattr("hpo.jobs.launch.start", lambda *_, **__: "nowhere")
    monkeypatch.setattr("hpo.jobs.launch.start_apart", lambda *_, **__: None)
    monkeypatch.setattr(guard, "ACTS_A_SECOND", 1e9)
    store = sqlite_url(tmp_path)
    with Store(store) as opened:
        recorded(opened, "bank", values=[0.5])
    monkeypatch.setattr("hpo.serve.aws.door.CALLS_A_SECOND", 1e9)
    for name, value in {"ENDPOINT_URL_S3": bucket_at, "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    keys = Keys(tmp_path / "keys.json")
    keys.add("first", "look")
    settings = ServeSettings(store=store, folder=tmp_path / "serve", aws_keys=keys.file, rate=1e9)
    token = Tokens(settings.tokens_file).add("actor", "act")
    with TestClient(make_app(settings), base_url="http://localhost") as client:
        yield Place(
            folder=tmp_path,
            store=store,
            client=client,
            token=token,
            service=Door(client, keys, store),
            bucket=s3_client(bucket_at),
            patch=monkeypatch,
            capture=capsys,
        )


@pytest.mark.parametrize("door", DOORS)
def test_each_door_refuses_wrong_jobs_with_the_same_words_before_they_are_recorded(door: str, place: Place) -> None:
    lacking = {}
    for name, wrong in WRONG.items():
        told = DOORS[door](wrong_job(wrong, place.folder), place)
        says = wrong.elsewhere.get(door, wrong.says)
        if missing := [each for each in says if each.lower() not in told.lower()]:
            lacking[name] = (missing, told)
        if place.jobs() != ["bank"]:
            lacking[name] = (["a refusal before the job is in the record"], told)
            break
    assert not lacking, "\n".join(f"{name}: {missing} not in {told!r}" for name, (missing, told) in lacking.items())


def test_a_clone_has_the_columns_by_name_and_answers_as_the_job_did(place: Place) -> None:
    job = wrong_job(
        Wrong(says=(), rows={"train": frame(weight=1.5, kind=["a", "b"] * 10, row_id=range(20))}), place.folder
    )
    job["trainer"]["num_workers"] = 0
    keys = {
        "target": "label",
        "weight": "weight",
        "categorical": ["kind"],
        "header": True,
        "drop": ["size"],
        "keep": ["row_id"],
    }
    rows = job["data"]["channels"]["train"] | keys
    job["data"]["channels"] = {"train": rows, "validation": rows}
    assert by_command(job, place) == ACCEPTED
    headers = {"Authorization": f"Bearer {place.token}"}
    found = place.client.get("/api/jobs/mine/file", headers=headers).json()
    assert found["missing"] == []
    assert found["file"]["data"]["channels"]["train"] == rows
    clone = found["file"] | {"name": "clone", "tuning": found["file"]["tuning"] | {"random_seed": 7}}
    assert by_command(clone, place) == ACCEPTED
    with Store(place.store) as record:
        one, other = (record.job(name).spec["inputs"]["train"] for name in ("mine", "clone"))
    assert one["fingerprint"] == other["fingerprint"]


def test_a_check_and_a_start_take_trainings_and_show_their_plan(place: Place) -> None:
    job = wrong_job(Wrong(says=()), place.folder)
    del job["tuning"]
    job["trainer"]["hyperparameters"]["num_round"] = 7
    headers = {"Authorization": f"Bearer {place.token}"}
    checked = place.client.post("/api/jobs?dry_run=true", content=json.dumps(job), headers=headers)
    assert "7 rounds" in checked.json()["text"], checked.text
    assert place.jobs() == ["bank"]
    started = place.client.post("/api/jobs", content=json.dumps(job), headers=headers)
    assert started.status_code == 201, started.text
    assert sorted(place.jobs()) == ["bank", "mine"]
