"""Places that jobs of clients may use: roots that they write below, and hosts, each with its secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpo.serve.places import Places
from tests.support.refusals import refuses
from trainers import ConfigurationError

HOOK = {"type": "webhook", "url": "https://hooks.example.org/a", "url_variable": None, "secret_variable": None}
MAIL = {"type": "email", "host": "smtp.example.org", "user_variable": None, "password_variable": None}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_command_line_binds_each_secret_to_its_host() -> None:
    places = Places.of(["/mnt/models"], ["Hooks.example.org", "smtp.example.org=A, B", "smtp.example.org=C"])
    assert places.hosts == {"hooks.example.org": frozenset(), "smtp.example.org": frozenset("ABC")}
    assert Places.of_json(json.loads(json.dumps(places.to_json()))) == places


@pytest.mark.parametrize(
    ("job", "path"),
    [
        ({"data": {"path": "http://169.254.169.254/latest/meta-data"}}, "data.path"),
        (
            {"data": {"channels": {"train": {"path": ["a.csv", "https://10.0.0.5/b.csv"]}}}},
            "data.channels.train.path[1]",
        ),
        ({"data": {"path": "s3://bucket/a.csv?endpoint_override=http%3A%2F%2F10.0.0.5%3A9000"}}, "data.path"),
        ({"data": {"path": "s3://bucket/a.csv?endpoint_override=10.0.0.5:9000"}}, "data.path"),
        ({"data": {"path": "hdfs://10.0.0.5/a.csv"}}, "data.path"),
        ({"storage_path": "gs://bucket/a?endpoint_override=10.0.0.5"}, "storage_path"),
        ({"trackers": {"mlflow": {"tracking_uri": "http://10.0.0.5:5000"}}}, "trackers.mlflow.tracking_uri"),
        ({"trackers": {"mlflow": {"tracking_uri": "postgresql://me@10.0.0.5/mlflow"}}}, "trackers.mlflow.tracking_uri"),
        ({"InputDataConfig": [{"S3Uri": "s3://b/x?endpoint_override=10.0.0.5"}]}, "InputDataConfig[0].S3Uri"),
        ({"notices": {"ops": HOOK}}, "notices.ops"),
        ({"notices": {"ops": MAIL}}, "notices.ops"),
    ],
)
def test_a_host_that_is_not_listed_is_refused_and_one_that_is_goes(job: dict[str, Any], path: str) -> None:
    with refuses(ConfigurationError, field=path, remedy="hpo serve --allow-host"):
        Places.of(hosts=["another.example.org"]).check(job)
    Places.of(hosts=["169.254.169.254", "10.0.0.5", "hooks.example.org", "smtp.example.org"]).check(job)


@pytest.mark.parametrize(
    "job",
    [
        {"data": {"path": "s3://bucket/a.csv?region=eu-central-1"}, "storage_path": "gs://bucket/models"},
        {"data": {"path": "train.csv"}, "tags": {"wiki": "https://wiki.example.org"}},
        {"data": None, "trainer": {"hyperparameters": {"hub": "https://hub.example.org"}}, "notices": {}},
        {"store": "postgresql://db.example.org/jobs", "trackers": {"mlflow": {"tracking_uri": "sqlite:///a.db"}}},
        {"HyperParameters": {"url": "http://a.example.org"}, "OutputDataConfig": {"S3OutputPath": "s3://bucket/x"}},
    ],
)
def test_buckets_and_texts_that_are_no_places_go(job: dict[str, Any]) -> None:
    Places().check(job)


def test_a_secret_goes_to_its_own_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places.of(hosts=["smtp.example.org=WARMBAND_NOTICE_A", "hooks.example.org=WARMBAND_NOTICE_URL"])
    places.check({"notices": {"ops": {**MAIL, "password_variable": "WARMBAND_NOTICE_A"}}})
    for notice, secret in (
        ({**MAIL, "password_variable": "WARMBAND_NOTICE_B"}, "WARMBAND_NOTICE_B"),
        ({**HOOK, "secret_variable": "WARMBAND_NOTICE_A"}, "WARMBAND_NOTICE_A"),
    ):
        with refuses(ConfigurationError, field="notices.ops", value=secret, remedy=f"={secret}"):
            places.check({"notices": {"ops": notice}})
    secret = {**HOOK, "url": None, "url_variable": "WARMBAND_NOTICE_URL"}
    with refuses(ConfigurationError, field="notices.ops", value="WARMBAND_NOTICE_URL", remedy="set it"):
        places.check({"notices": {"ops": secret}})
    monkeypatch.setenv("WARMBAND_NOTICE_URL", "https://hooks.example.org/secret")
    places.check({"notices": {"ops": secret}})
    monkeypatch.setenv("WARMBAND_NOTICE_URL", "https://10.0.0.5/secret")
    with refuses(ConfigurationError, field="notices.ops", value="10.0.0.5", remedy="--allow-host 10.0.0.5"):
        places.check({"notices": {"ops": secret}})


def test_jobs_write_below_the_roots_alone(tmp_path: Path, home: Path) -> None:
    (home / "jobs").mkdir(parents=True)
    (tmp_path / "models").mkdir()
    (home / "jobs" / "link").symlink_to(tmp_path)
    places = Places.of([str(tmp_path / "models")])
    for allowed in (None, str(home / "jobs"), str(home / "jobs" / "team"), str(tmp_path / "models" / "a"), "s3://b/a"):
        places.check({"storage_path": allowed})
    for refused in (
        str(tmp_path),
        str(home),
        str(home / "serve"),
        str(home / "jobs" / ".." / "serve"),
        str(home / "jobs" / "link"),
        str(tmp_path / "models-of-others"),
        f"file://{tmp_path}",
        "/etc",
    ):
        with refuses(ConfigurationError, field="storage_path", value=refused, remedy="hpo serve --root"):
            places.check({"storage_path": refused})
    with refuses(ConfigurationError, field="trackers.tensorboard.folder", value="/srv", remedy="hpo serve --root"):
        places.check({"trackers": {"tensorboard": {"folder": "/srv"}}})


def test_buckets_that_are_listed_are_the_only_ones() -> None:
    places = Places.of(["s3://team/models"])
    places.check({"storage_path": "s3://team/models/a?region=eu-central-1"})
    for refused in ("s3://team/models-of-others", "s3://another/models", "gs://team/models"):
        with refuses(ConfigurationError, field="storage_path", value=refused, remedy="hpo serve --root"):
            places.check({"storage_path": refused})
