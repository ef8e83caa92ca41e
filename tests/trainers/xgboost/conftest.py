"""Gangs of processes, which tests of a module share, and rows that are learnt from disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.external_rows import FRAME, SMALL
from tests.support.process_gang import ProcessGang, process_gang
from trainers.xgboost import program as programs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FRAME[:2500].to_parquet(tmp_path / "train.parquet", row_group_size=300)
    FRAME[2500:].to_csv(tmp_path / "validation.csv", index=False)
    return tmp_path


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rows go, and few of them at a time."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(programs, "BLOCK_BYTES", SMALL)
    monkeypatch.setattr(programs, "SCORED_BYTES", 0)
    return tmp_path / "scratch"


@pytest.fixture(scope="module")
def gang() -> Iterator[ProcessGang]:
    """Three workers; in this process there is no Ray."""
    with tempfile.TemporaryDirectory() as folder, process_gang(3, folder) as started:
        yield started


@pytest.fixture(scope="module")
def pair() -> Iterator[ProcessGang]:
    """As `gang`, of two workers."""
    with tempfile.TemporaryDirectory() as folder, process_gang(2, folder) as started:
        yield started
