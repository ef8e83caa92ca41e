"""Where the store is: URLs, files, servers and their passwords, and errors that say what to give instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support.refusals import refuses, refuses_each
from tests.support.rows import job, report, sqlite_url
from trainers.errors import ConfigurationError, WarmbandError


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
