"""Planted secrets: a job uses a password, keys and a token, and none of them is found anywhere afterwards."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from tests.support.command import run as hpo
from tests.support.postgres import Postgres
from tests.support.refusals import mentions
from tests.support.secrets import ProcessList, found
from trainers import storage

ROOT = Path(__file__).resolve().parents[2]
HPO = [sys.executable, "-m", "hpo"]

JOB = """
name: planted
tags: {{team: churn}}
data: {{channels: {{train: {{path: train.csv}}, validation: {{path: validation.csv}}}}}}
trainer: {{type: xgboost, num_workers: 2, hyperparameters: {{objective: binary:logistic, eval_metric: auc}}}}
storage_path: "{storage_path}"
tuning:
  objective_metric_name: validation:auc
  max_jobs: 2
  hyperband: {{max_resource: 3}}
  ranges: {{eta: {{type: continuous, min: 0.1, max: 0.5}}}}
"""


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for temporary files whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="wb") as folder:
        yield Path(folder)


def run(environment: Mapping[str, str], folder: Path, *command: str, seconds: float = 300.0) -> bytes:
    """Runs a command; returns all that it said."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    return (done.stdout + done.stderr).encode()


READ = """
import json, sys
from hpo.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["hpo", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, words
"""
"""Several commands of `hpo` in one process, since each needs seconds to import what it shows a job with."""


def tables(url: str) -> dict[str, bytes]:
    """Every table of a database, as text."""
    engine = sa.create_engine(url)
    known = sa.MetaData()
    known.reflect(engine)
    with engine.connect() as connection:
        held = {name: repr(connection.execute(sa.select(table)).all()) for name, table in known.tables.items()}
    engine.dispose()
    return {f"table {name}": text.encode() for name, text in held.items()}


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def test_planted_secrets_are_found_nowhere(postgres: Postgres, s3: str, short_folder: Path) -> None:
    planted = {
        "the database's password": f"pw-{secrets.token_hex(12)}",
        "the S3 key": f"KEY{secrets.token_hex(8)}",
        "the S3 secret": secrets.token_hex(20),
        "the token": secrets.token_hex(32),
    }
    admin = postgres.new_database()
    url = postgres.of_another_user(admin, planted["the database's password"])
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("RAY_", "AWS_", "WARMBAND_STORE"))}
    environment = {
        **kept,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(short_folder),
        "HOME": str(short_folder / "home"),
        "WARMBAND_HOME": str(short_folder / "warmband"),
        "WARMBAND_STORE": url,
        "AWS_ACCESS_KEY_ID": planted["the S3 key"],
        "AWS_SECRET_ACCESS_KEY": planted["the S3 secret"],
        "AWS_EC2_METADATA_DISABLED": "true",
        "RAY_AUTH_MODE": "token",
        "RAY_worker_niceness": "0",
        "RAY_AUTH_TOKEN": planted["the token"],
    }
    (short_folder / "home").mkdir()
    (short_folder / "job.yaml").write_text(JOB.format(storage_path=s3))
    for name, count in {"train": 200, "validation": 100}.items():
        rows = np.random.default_rng(0).integers(0, 2, size=(count, 3))
        np.savetxt(short_folder / f"{name}.csv", rows, fmt="%d", delimiter=",")
    reading = [
        ("jobs",),
        ("describe", "planted", "--json"),
        ("trials", "planted", "--csv", "trials.csv"),
        ("report", "planted", "-o", "report.html", "--pictures", "pictures"),
        ("export", "planted", "--format", "parquet", "-o", "parquet"),
        ("export", "planted", "--format", "csv", "-o", "csv"),
        ("export", "planted", "--format", "optuna", "-o", f"sqlite:///{short_folder}/study.db"),
    ]
    with ProcessList() as processes:
        said = {
            "what hpo tune printed": run(environment, short_folder, *HPO, "tune", "job.yaml", "--verbose"),
            "what the others printed": run(environment, short_folder, sys.executable, "-c", READ, json.dumps(reading)),
        }
    assert [line for line in said["what hpo tune printed"].splitlines() if b"planted" in line and b"Completed" in line]
    # But of Ray's own processes, whose words `--verbose` passes on.
    ours = [line for line in b"".join(said.values()).splitlines() if b" pid=" not in line]
    assert not any(b"Traceback" in line for line in ours)
    assert not list(short_folder.glob("warmband-*")), "what gangs keep goes with them"
    held = {**said, **tables(url), **files(short_folder)}
    held["the process list"] = b"\n".join(processes.lines)
    models = storage.names(storage.join(s3, "planted"))
    held["the models' places"] = json.dumps(models).encode()

    # Real workers wrote their models there, and went on from them.
    assert {"planted-000", "planted-001"} & set(models)
    # The search sees what it is for: tables with rows, Ray's session, the page, the exports.
    assert len(held["table trials"]) > 100
    assert len([name for name in held if "/session_" in name and "/logs/" in name]) > 5
    assert b"hpo\0tune" in held["the process list"]
    for ending in ("report.html", ".parquet", ".csv", "study.db"):
        assert [name for name in held if name.endswith(ending)], ending
    assert found("planted", held["table trials"])
    hits = {(what, name) for what, secret in planted.items() for name, raw in held.items() if found(secret, raw)}
    assert hits == set()
    postgres.drop(admin)


BAD = {
    "a wrong password": ("postgresql://warm:{secret}@127.0.0.1:{port}/postgres", ("password authentication failed",)),
    "nobody there": ("postgresql://warm:{secret}@127.0.0.1:1/jobs", ("refused",)),
    "no such database": ("postgresql://me:{secret}@127.0.0.1:1/jobs?connect_timeout=none", ("connect_timeout",)),
    "another kind": ("mysql://warm:{secret}@127.0.0.1/jobs", ("URL", "mysql", "WARMBAND_STORE")),
    "no URL": ("postgresql//warm:{secret}@127.0.0.1/jobs", ("URL", "WARMBAND_STORE")),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_connection_that_fails_does_not_tell_its_password(
    kind: str,
    postgres: Postgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    secret = "hidden-" + secrets.token_hex(8)
    url, names = BAD[kind]
    url = url.format(secret=secret, port=postgres.port)
    (tmp_path / "url").write_text(url)
    for name, given in {"WARMBAND_STORE": url, "WARMBAND_STORE_FILE": str(tmp_path / "url")}.items():
        with monkeypatch.context() as patched:
            patched.setenv(name, given)
            code = hpo(patched, "jobs")
        said = "".join(capfd.readouterr())
        assert code in (1, 2), said
        assert "Traceback" not in said
        mentions(said, *names)
        assert secret not in said
