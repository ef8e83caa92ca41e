"""Bad input to the Python API: one error that names the field, the value and the remedy, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bad_input import GOOD, make
from tests.support.hpo.bad_input import damaged
from tests.support.refusals import refuses
from trainers import GangError
from trainers.channels.files import files


def test_a_worker_says_the_same_of_files_too_large_to_be_read_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker in this process; what one elsewhere says comes from its gang: tests/ray/trainers/gangs/test_gang.py."""
    monkeypatch.setattr(files, "QUICK_BYTES", 0)
    with refuses(GangError, field="channel 'validation'", value=1, remedy="'validation:auc'"):
        make(0).fit({"train": GOOD, "validation": damaged(tmp_path, "one class")})
