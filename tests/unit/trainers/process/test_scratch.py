"""Temporary folders of processes that end, live, and are killed."""

from __future__ import annotations

from pathlib import Path

from tests.support.trainers.process.scratch import temporary  # noqa: F401  # A fixture.
from trainers.process.scratch import Scratch


def test_it_goes_when_it_is_closed(temporary):
    scratch = Scratch("gang0")
    Path(scratch.path, "file").touch()
    assert Path(scratch.path).parent == temporary
    scratch.close()
    assert list(temporary.iterdir()) == []


def test_what_no_process_ever_locked_is_somebody_elses(temporary):
    other = temporary / "warmband-models"
    other.mkdir()
    Scratch("gang0").close()
    assert other.is_dir()
