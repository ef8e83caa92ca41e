"""`hpo db upgrade|check`, on both databases; and what their own backups are worth: one is put back."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from hpo.record import maintenance as upkeep
from hpo.record.schema import SCHEMA_VERSION, revisions
from hpo.record.store import Store, TrialRow
from tests.support.hpo.record.maintenance import store  # noqa: F401  # A fixture.
from tests.support.postgres import PASSWORD, Postgres
from tests.support.processes import python
from tests.support.refusals import mentions, missing_names
from tests.support.rows import job, report, until
from tests.support.schemas import VERSIONS, execute


def hpo(*arguments: str, url: str) -> tuple[int, str]:
    """The exit code and all that was printed, as a narrow shell sees it."""
    environment = {**os.environ, "WARMBAND_STORE": url, "COLUMNS": "40"}
    done = python("-m", "hpo", "db", *arguments, environment=environment)
    return done.returncode, done.stdout + done.stderr


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


def test_an_older_or_empty_store_is_a_problem_with_a_remedy(database):
    with Store(database) as opened:
        url = opened.url
    execute(database, "UPDATE warmband_version SET version_num = '0004'")
    code, printed = hpo("check", url=database)
    assert code == 1
    assert url in printed
    mentions(printed.replace(url, ""), 4, SCHEMA_VERSION, "hpo db upgrade")


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
    """Copies a store as docs/guides/database.md says."""
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as original:
            original.execute(f"VACUUM INTO '{copy}'")
    else:
        clients("pg_dump", database, "--format=custom", "--no-owner", f"--file={copy}")


def put_back(database: str, copy: Path, request) -> str:
    """The URL of a new store made of a backup, as docs/guides/database.md says."""
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
