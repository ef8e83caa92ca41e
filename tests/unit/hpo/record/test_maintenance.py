"""`hpo db upgrade|check`, on both databases; and what their own backups are worth: one is put back."""

from __future__ import annotations

import json
import re

from typer.testing import CliRunner

from hpo.cli import app
from hpo.record import maintenance as upkeep
from hpo.record.schema import SCHEMA_VERSION
from tests.support.hpo.record.maintenance import store  # noqa: F401  # A fixture.
from tests.support.postgres import PASSWORD
from tests.support.refusals import mentions, refuses
from tests.support.rows import job, silence
from tests.support.schemas import execute
from trainers.errors import ConfigurationError, WarmbandError

RUNNER = CliRunner()


def test_an_empty_database_gets_the_tables(database):
    assert upkeep.upgrade(database).before is None
    assert upkeep.check(database).problems == []


def test_a_store_that_is_well_is_said_to_be(store, database):
    found = upkeep.check(database)
    assert (found.schema, found.problems, found.abandoned) == (SCHEMA_VERSION, [], {})
    assert found.rows == {"jobs": 1, "trials": 1, "reports": 100, "ledger": 2, "lines": 1, "additions": 0, "acts": 1}
    assert found.size_bytes > 10_000
    assert found.server.startswith("SQLite 3" if database.startswith("sqlite") else "PostgreSQL 1")
    done = RUNNER.invoke(app, ["db", "check", "--store", database, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout) == found.to_json()
    assert PASSWORD not in done.stdout


def test_rows_that_belong_to_nothing_are_found(store, database):
    execute(
        database,
        "INSERT INTO reports (job, trial_id, step, metrics, at) VALUES ('bank', 'gone', 1, '{}', 1), "
        "('lost', 't0', 1, '{}', 1)",
        "INSERT INTO ledger (job, trial_id, gang, kind, worker_seconds, at, id, workers) VALUES "
        "('lost', '', 'g', 'training', 1, 1, 'x', 1), ('bank', 'probe', 'g', 'training', 1, 1, 'y', 1)",
    )
    problems = upkeep.check(database).problems
    assert len(problems) == 3
    mentions(problems[0], 1, "reports", "lost")
    mentions(problems[1], 1, "ledger", "lost")
    mentions(problems[2], 2, "reports", "trial", "bank")
    with refuses(WarmbandError, field=("reports", "ledger", "trial"), value="lost", remedy="bank"):
        RUNNER.invoke(app, ["db", "check", "--store", database], catch_exceptions=False)


def test_a_job_that_nobody_drives_is_named(store, database):
    store.create_job(job("left", driver={"host": "node-7", "pid": 41}))
    silence(store, 300.0)
    store.create_job(job("driven"))
    with store.writer("driven"):
        abandoned = upkeep.check(database).abandoned
    assert list(abandoned) == ["left"]
    assert re.search(r"\b3\d\d s\b", mentions(abandoned["left"], 41, "node-7"))
    done = RUNNER.invoke(app, ["db", "check", "--store", database])
    assert done.exit_code == 0, "it is the jobs that are to be resumed; the store is well"
    mentions(done.stdout, "left", 41, "node-7", "hpo resume left")


def test_a_file_that_is_not_there_is_not_made(tmp_path):
    with refuses(ConfigurationError, field=f"{tmp_path}/none.db", remedy="WARMBAND_STORE"):
        upkeep.check(f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()
