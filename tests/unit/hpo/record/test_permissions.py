"""Who may read a record in a file: its owner, unless somebody says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.record.store import JobRow, Store
from tests.support.rows import sqlite_url


def test_a_new_record_and_its_home_are_for_their_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WARMBAND_STORE", raising=False)
    with Store() as store:
        store.create_job(JobRow(name="bank", created_at=1.0))
        modes = {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / "home").iterdir()}
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert set(modes.values()) == {0o600}, modes


def test_a_record_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    Store(sqlite_url(tmp_path)).close()
    (tmp_path / "store.db").chmod(0o664)
    Store(sqlite_url(tmp_path)).close()
    assert (tmp_path / "store.db").stat().st_mode & 0o777 == 0o664
