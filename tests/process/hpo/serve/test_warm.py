"""Checks in processes that a warm one forks: none spoils the next, and each ends in time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hpo.record import Actor
from hpo.serve.errors import RefusedError
from hpo.serve.warm import WarmChecks
from tests.support.rows import until

ALICE = Actor(by="alice", door="REST")


@pytest.fixture
def checks() -> Iterator[WarmChecks]:
    made = WarmChecks(renewed=3, module="tests.support.hpo.serve.warm_checks")
    yield made
    made.end()


def ask(checks: WarmChecks, kind: str, seconds: float = 60.0, **given: Any) -> Any:
    return asyncio.run(checks.ask({"kind": kind, **given}, ALICE, seconds))


def test_a_check_that_crashes_or_leaks_spoils_no_other(checks: WarmChecks) -> None:
    first = ask(checks, "check")
    assert first["seen"] == ["check"]
    assert first["by"] == ALICE.to_text()
    for wrong in ("crash", "fail"):
        with pytest.raises(RefusedError) as refused:
            ask(checks, wrong)
        assert refused.value.status == 500
    renewed = ask(checks, "check")
    assert renewed["seen"] == ["check"], "it has what another check left"
    assert renewed["parent"] != first["parent"], "the warm process is not renewed"
    until(lambda: not psutil.pid_exists(first["parent"]))


def test_a_check_that_hangs_ends_at_its_deadline_with_its_processes(checks: WarmChecks, tmp_path: Path) -> None:
    ask(checks, "check")
    began = time.monotonic()
    with pytest.raises(RefusedError) as refused:
        ask(checks, "hang", 2.0, file=str(tmp_path / "pids"))
    assert refused.value.status == 503
    assert time.monotonic() - began < 6.0
    until(lambda: not any(map(alive, pids(tmp_path / "pids"))))
    assert ask(checks, "check")["seen"] == ["check"]


def test_checks_end_with_the_server(checks: WarmChecks, tmp_path: Path) -> None:
    async def end_meanwhile() -> None:
        asked = asyncio.create_task(checks.ask({"kind": "hang", "file": str(tmp_path / "pids")}, ALICE, 60.0))
        while not pids(tmp_path / "pids"):
            await asyncio.sleep(0.05)
        checks.end()
        with pytest.raises(RefusedError):
            await asked

    asyncio.run(end_meanwhile())
    until(lambda: not any(map(alive, pids(tmp_path / "pids"))))


def test_a_warm_process_that_was_killed_is_replaced(checks: WarmChecks) -> None:
    os.kill(ask(checks, "check")["parent"], 9)
    until(lambda: checks._warm is not None and checks._warm.over)
    assert ask(checks, "check")["seen"] == ["check"]


def pids(file: Path) -> list[int]:
    """What a check that hangs has written."""
    text = file.read_text() if file.exists() else ""
    return list(map(int, text.split()))


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
