"""`hpo db upgrade|check`, on both databases; and what their own backups are worth: one is put back."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from hpo.cli import app
from hpo.record import maintenance as upkeep
from hpo.record.schema import SCHEMA_VERSION, revisions
from hpo.record.store import LineRow, Store, TrialRow
from tests.support.postgres import PASSWORD, Postgres
from tests.support.processes import python
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.rows import bill, job, report, silence, until
from tests.support.schemas import VERSIONS, execute
from trainers.errors import ConfigurationError, WarmbandError

RUNNER = CliRunner()


@pytest.fixture
def store(database) -> Iterator[Store]:
    """A store with a job that has ended, and a row of each kind."""
    with Store(database) as opened:
        opened.create_job(job())
        with opened.writer("bank") as writer:
            writer.trial(TrialRow(job="bank", trial_id="t0", number=0))
            writer.report(*map(report, range(100)))
            writer.ledger(bill(1, trial_id="t0"), bill(2))
            writer.line(LineRow(job="bank", text="a gang is up", at=1.0))
            writer.job(status="Completed")
        yield opened


def hpo(*arguments: str, url: str) -> tuple[int, str]:
    """The exit code and all that was printed, as a narrow shell sees it."""
    environment = {**os.environ, "WARMBAND_STORE": url, "COLUMNS": "40"}
    done = python("-m", "hpo", "db", *arguments, environment=environment)
    return done.returncode, done.stdout + done.stderr


# ---- upgrade


@pytest.mark.process
def test_an_older_store_is_brought_up_and_told_what_was_done(database):
    execute(database, *VERSIONS[2].split(";\n")[:-1])
    code, printed = hpo("upgrade", url=database)
    assert code == 0
    lines = [line.strip() for line in printed.splitlines()]
    head = next(place for place, line in enumerate(lines) if not missing_names(line, 3, SCHEMA_VERSION))
    steps = lines[head + 1 : head + 1 + SCHEMA_VERSION - 3]
    assert steps == revisions()[3:], "a line for each, whatever the width"
    mentions(steps[0], "gang", "ledger")
    assert PASSWORD not in printed
    again = upkeep.upgrade(database)
    assert (again.before, again.after, again.steps) == (SCHEMA_VERSION, SCHEMA_VERSION, [])
    with Store(database) as opened:
        assert opened.trials("bank")[0].failure_reason == "boom"


def test_an_empty_database_gets_the_tables(database):
    assert upkeep.upgrade(database).before is None
    assert upkeep.check(database).problems == []


# ---- check


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


@pytest.mark.process
def test_an_older_or_empty_store_is_a_problem_with_a_remedy(database):
    with Store(database) as opened:
        url = opened.url
    execute(database, "UPDATE warmband_version SET version_num = '0004'")
    code, printed = hpo("check", url=database)
    assert code == 1
    assert url in printed
    mentions(printed.replace(url, ""), 4, SCHEMA_VERSION, "hpo db upgrade")


def test_a_damaged_file_is_found(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    with Store(url) as opened:
        opened.create_job(job())
        with opened.writer("bank") as writer:
            writer.trial(TrialRow(job="bank", trial_id="t0", number=0))
            writer.report(*map(report, range(5000)))
    content = bytearray((tmp_path / "store.db").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = bytes(4096)
    (tmp_path / "store.db").write_bytes(content)
    with pytest.raises(WarmbandError) as caught:
        RUNNER.invoke(app, ["db", "check", "--store", url], catch_exceptions=False)
    assert "damaged" in str(caught.value) or "malformed" in str(caught.value)


def test_a_file_that_is_not_there_is_not_made(tmp_path):
    with refuses(ConfigurationError, field=f"{tmp_path}/none.db", remedy="WARMBAND_STORE"):
        upkeep.check(f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()


# ---- backup


@pytest.mark.process
def test_a_backup_of_a_store_in_use_is_whole_and_can_be_put_back(store, database, tmp_path, request):
    """A job writes while it is copied: the copy has whole batches, and goes on as a store of its own."""
    store.create_job(job("running"))
    done = threading.Event()
    with store.writer("running") as writer:
        writer.trial(TrialRow(job="running", trial_id="t0", number=0))

        def write() -> None:
            for start in range(0, 10**9, 100):
                writer.report(*(report(step, job="running") for step in range(start, start + 100)))
                if done.wait(0.01):
                    return

        busy = threading.Thread(target=write)
        busy.start()
        until(lambda: len(store.reports("running")) > 500, 30.0)
        back_up(database, tmp_path / "copy")
        done.set()
        busy.join()
    with Store(put_back(database, tmp_path / "copy", request)) as restored:
        assert store.reports("bank") == restored.reports("bank")
        assert store.ledger("bank") == restored.ledger("bank")
        steps = [row.step for row in restored.reports("running")]
        assert steps == list(range(len(steps)))
        assert len(steps) >= 500
        assert len(steps) % 100 == 0
        with restored.writer("bank") as writer:
            writer.report(report(1000))
        assert upkeep.check(restored._engine.url.render_as_string(hide_password=False)).problems == []


def back_up(database: str, copy: Path) -> None:
    """Copies a store as docs/database.md says."""
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as original:
            original.execute(f"VACUUM INTO '{copy}'")
    else:
        clients("pg_dump", database, "--format=custom", "--no-owner", f"--file={copy}")


def put_back(database: str, copy: Path, request) -> str:
    """The URL of a new store made of a backup, as docs/database.md says."""
    if database.startswith("sqlite"):
        return f"sqlite:///{copy.rename(copy.with_name('fresh.db'))}"
    server: Postgres = request.getfixturevalue("postgres")
    fresh = server.new_database()
    request.addfinalizer(lambda: server.drop(fresh))
    clients("pg_restore", fresh, "--no-owner", "--exit-on-error", str(copy))
    return fresh


def clients(program: str, database: str, *arguments: str) -> None:
    """Calls one of PostgreSQL's own client programs on a database."""
    url = sa.make_url(database)
    where = ["-h", str(url.host), "-p", str(url.port), "-U", str(url.username), "-d", str(url.database)]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    subprocess.run([program, *where, *arguments], env=environment, check=True, timeout=60)
