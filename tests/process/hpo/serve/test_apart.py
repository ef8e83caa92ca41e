"""Processes that create jobs: one that is late goes on if its job is in the record, and ends if it is not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from hpo.record import Actor, Store
from hpo.serve.apart import ask
from hpo.serve.errors import RefusedError
from tests.support.rows import sqlite_url

MODULE = "tests.support.hpo.serve.late_start"


def created(store: str, *, written: bool) -> Any:
    return asyncio.run(ask(MODULE, {"store": store, "written": written}, Actor(by="alice", door="REST")))


def test_a_late_creation_goes_on_if_its_job_is_written_and_else_ends(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with Store(url) as store:
        began = time.monotonic()
        with pytest.raises(RefusedError) as refused:
            created(url, written=False)
        assert (refused.value.status, refused.value.kind) == (503, "Unavailable")
        assert time.monotonic() - began < 30.0, "it has slept on"
        assert store.jobs() == []
        assert created(url, written=True) == {"job": "late"}
        assert [row.name for row in store.jobs()] == ["late"]
