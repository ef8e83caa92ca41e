"""Where the store is: URLs, files, servers and their passwords, and errors that say what to give instead."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from hpo.record.store import Store
from tests.support.at_once import LIGHT, ROOT
from tests.support.postgres import PASSWORD
from tests.support.refusals import mentions, refuses, refuses_each
from tests.support.rows import job, report, sqlite_url
from trainers.errors import ConfigurationError, WarmbandError

# ---- files


@pytest.mark.parametrize("content", [b"not a database\n" * 1000, b"x" * 100])
def test_a_file_that_is_no_database_is_refused(tmp_path, content):
    (tmp_path / "store.db").write_bytes(content)
    with refuses(ConfigurationError, field=f"{tmp_path}/store.db", value="database", remedy="WARMBAND_STORE"):
        Store(sqlite_url(tmp_path))
    assert (tmp_path / "store.db").read_bytes() == content


def test_a_file_that_was_cut_is_said_to_be(tmp_path):
    with Store(sqlite_url(tmp_path)) as store:
        store.create_job(job())
        with store.writer("bank") as writer:
            writer.report(*(report(step) for step in range(5000)))
    whole = (tmp_path / "store.db").read_bytes()
    for share in (0.1, 0.5, 0.9):
        (tmp_path / "store.db").write_bytes(whole[: int(len(whole) * share)])
        with refuses(WarmbandError, field=f"{tmp_path}/store.db", value="malformed", remedy="WARMBAND_STORE"):
            read_all(tmp_path)


def read_all(folder: Path) -> None:
    with Store(sqlite_url(folder)) as store:
        store.reports(store.job("bank").name)


def test_a_store_that_may_only_be_read_is_refused_when_a_job_is_made(local, tmp_path):
    with Store(f"sqlite:///file:{tmp_path}/store.db?mode=ro&uri=true") as store:
        assert store.job("bank").name == "bank"
        with refuses(WarmbandError, field=f"{tmp_path}/store.db", value="readonly", remedy="WARMBAND_STORE"):
            store.create_job(job("other"))


USE_IT = (
    LIGHT
    + """
from hpo.record.store import JobRow, Store
from trainers.errors import WarmbandError
folder, kind = sys.argv[1:]
try:
    if kind != "ro":
        open(f"{folder}/filler", "wb").write(bytes(10_000_000))
except OSError:
    pass
try:
    Store(f"sqlite:///{folder}/store.db").create_job(JobRow(name="a", created_at=1.0))
except WarmbandError as error:
    print(type(error).__name__, error)
"""
)


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "message"), [("size=64k", "(full|disk I/O error)"), ("ro", "(readonly|unable to open)")]
)
def test_a_full_disk_and_a_read_only_folder_are_refused(tmp_path, kind, message):
    """In a mount namespace of its own, which ends with the process; that takes the rights of root."""
    mounted = f'mount -t tmpfs -o {kind} tmpfs {tmp_path} && exec {sys.executable} -c "$0" {tmp_path} {kind}'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, USE_IT], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    if "denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("cannot mount a file system here")
    assert re.match(rf"(ConfigurationError|WarmbandError) .*{message}", done.stdout), done
    assert len(done.stdout.splitlines()) == 1
    mentions(done.stdout, f"sqlite:///{tmp_path}/store.db", "WARMBAND_STORE")


# ---- URLs


def test_a_wrong_url_is_an_error_that_says_what_to_give():
    forms = ("URL", "sqlite", "postgresql", "WARMBAND_STORE")
    refuses_each(
        [
            (lambda: Store("no url"), forms),
            (lambda: Store("mysql://host/db"), ("mysql", *forms)),
            (lambda: Store("sqlite://"), ("memory", *forms)),
            (lambda: Store("sqlite:///:memory:"), ("memory", *forms)),
            (
                lambda: Store("sqlite:////nowhere/at/all/store.db"),
                ("sqlite:////nowhere/at/all/store.db", "folder", "WARMBAND_STORE"),
            ),
            (lambda: Store("sqlite:////tmp"), ("sqlite:////tmp", "folder", "file", "WARMBAND_STORE")),
        ],
        ConfigurationError,
    )


def test_a_server_that_is_not_there_is_an_error_of_ours():
    with refuses(ConfigurationError, field="127.0.0.1:1/none", value="refused", remedy="WARMBAND_STORE"):
        Store("postgresql+psycopg://me:secret@127.0.0.1:1/none")


def test_errors_hide_the_password():
    with pytest.raises(ConfigurationError) as caught:
        Store("postgresql://me:secret@127.0.0.1:1/none?connect_timeout=1")
    assert "secret" not in str(caught.value)


def test_where_the_store_is(tmp_path, monkeypatch):
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "a b%20" / "home"))
    monkeypatch.delenv("WARMBAND_STORE", raising=False)
    Store().close()
    assert (tmp_path / "a b%20" / "home" / "warmband.db").is_file()
    monkeypatch.setenv("WARMBAND_STORE", f"sqlite:///{tmp_path}/named.db")
    Store().close()
    assert (tmp_path / "named.db").is_file()
    Store(f"sqlite:///{tmp_path}/given.db").close()
    assert (tmp_path / "given.db").is_file()
    (tmp_path / "file").touch()
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("WARMBAND_STORE")
    with refuses(ConfigurationError, field="WARMBAND_HOME", value=str(tmp_path / "file"), remedy="folder"):
        Store()


def test_the_url_may_be_in_a_file(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text(f"sqlite:///{tmp_path}/named.db\n")
    monkeypatch.setenv("WARMBAND_STORE_FILE", str(tmp_path / "secret"))
    Store().close()
    assert (tmp_path / "named.db").is_file()
    monkeypatch.setenv("WARMBAND_STORE", f"sqlite:///{tmp_path}/first.db")
    Store().close()
    assert (tmp_path / "first.db").is_file()
    monkeypatch.delenv("WARMBAND_STORE")
    (tmp_path / "empty").touch()
    for wrong in ("nowhere", "empty"):
        monkeypatch.setenv("WARMBAND_STORE_FILE", str(tmp_path / wrong))
        with refuses(ConfigurationError, field="WARMBAND_STORE_FILE", value=str(tmp_path / wrong), remedy="URL"):
            Store()


@pytest.mark.system
@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "?password", "the file"])
def test_a_password_is_taken_from_where_libpq_looks_and_shown_nowhere(postgres, tmp_path, monkeypatch, way):
    whole = sa.make_url(postgres.new_database())
    url = f"postgresql://{whole.username}@{whole.host}:{whole.port}/{whole.database}"
    secret = tmp_path / "secret"
    if way == "PGPASSWORD":
        monkeypatch.setenv(way, PASSWORD)
    elif way == "PGPASSFILE":
        secret.write_text(f"{whole.host}:{whole.port}:*:{whole.username}:{PASSWORD}\n")
        secret.chmod(0o600)
        monkeypatch.setenv(way, str(secret))
    elif way == "PGSERVICEFILE":
        secret.write_text(
            f"[warm]\nhost={whole.host}\nport={whole.port}\nuser={whole.username}\npassword={PASSWORD}\n"
            f"dbname={whole.database}\n"
        )
        monkeypatch.setenv(way, str(secret))
        url = "postgresql:///?service=warm"
    elif way == "?password":
        url += f"?password={PASSWORD}"
    else:
        secret.write_text(whole.render_as_string(hide_password=False))
        monkeypatch.setenv("WARMBAND_STORE_FILE", str(secret))
        url = None
    with Store(url) as store:
        store.create_job(job())
        assert PASSWORD not in store.url
        with pytest.raises(ConfigurationError) as caught:
            store.create_job(job())
        assert PASSWORD not in str(caught.value)
    with Store(whole.render_as_string(hide_password=False)) as store:
        assert [each.name for each in store.jobs()] == ["bank"]
    for variable in ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "WARMBAND_STORE_FILE"):
        monkeypatch.delenv(variable, raising=False)
    postgres.drop(whole.render_as_string(hide_password=False))
