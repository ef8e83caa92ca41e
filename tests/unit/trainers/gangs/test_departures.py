"""What a gang held, once it is over: its own room is given back, and no other's."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.sharing import Waits
from trainers.gangs import gang as gang_module
from trainers.gangs.departures import Departures
from trainers.gangs.gang import END_SECONDS, Gang

OWN, OTHER = (f"{first}{'0' * 35}" for first in "12")


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The placement groups that were removed."""
    found: list[str] = []
    monkeypatch.setattr(gang_module, "remove_placement_group", lambda group: found.append(group.id.hex()))
    return found


def over(monkeypatch: pytest.MonkeyPatch) -> Gang:
    """A gang whose run has ended, and that took another gang's placement group for its own while it started."""
    mailbox: Any = None
    gang = Gang("gang", Waits(), ScalingConfig(num_workers=1), mailbox)
    monkeypatch.setattr(Gang, "_is_mine", lambda gang, group, row: True)
    monkeypatch.setattr(gang_module, "placement_group_table", lambda: {OTHER: {}})
    gang.observe()
    assert gang.placement_group == OTHER
    gang._over = True
    return gang


def test_what_a_gang_only_seemed_to_hold_is_not_taken_from_the_gang_that_holds_it(
    monkeypatch: pytest.MonkeyPatch, removed: list[str]
) -> None:
    """One that lost its workers and starts them again holds a new placement group of the same form."""
    over(monkeypatch).release()
    assert not removed


def test_what_its_workers_say_that_they_are_in_is_given_back_when_it_is_over(
    monkeypatch: pytest.MonkeyPatch, removed: list[str]
) -> None:
    gang = over(monkeypatch)
    gang.placed(OWN)
    leaving = Departures(print)
    leaving._until[gang] = 0.0
    assert leaving.see_off()
    assert removed == [OWN]


def test_a_gang_has_as_long_to_end_as_its_program_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: Any = SimpleNamespace(end_seconds=40.0)
    mailbox: Any = SimpleNamespace(order=lambda *order: None)
    leaving, now = Departures(print), time.monotonic()
    for program in (Waits(), slow):
        leaving.add(Gang("gang", program, ScalingConfig(num_workers=1), mailbox))
    quick, patient = (until - now for until in leaving._until.values())
    assert (round(quick), round(patient)) == (END_SECONDS, END_SECONDS + 40)


def test_a_gang_that_runs_keeps_its_room(monkeypatch: pytest.MonkeyPatch, removed: list[str]) -> None:
    gang = over(monkeypatch)
    gang.placed(OWN)
    gang._over = False
    gang.release()
    assert not removed


def test_a_gang_whose_ray_was_shut_down_under_it_starts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ray does by itself where a placement group is removed and there is no Ray."""
    removed: list[Any] = []
    posted: list[Any] = []

    class ShutDown:
        def __init__(self, *parts: Any, **named: Any) -> None:
            pass

        def fit(self) -> None:
            raise SystemExit(1)

    for name in ("HEALTH_CHECK_INTERVAL_S", "WORKER_GROUP_START_TIMEOUT_S", "ENABLE_PREEMPTION_WATCHER"):
        monkeypatch.setenv(f"RAY_TRAIN_{name}", "1")  # It sets them for good.
    monkeypatch.setattr("trainers.cluster.GangTrainer", ShutDown)
    monkeypatch.setattr("trainers.gangs.gang.remove_placement_group", removed.append)
    mailbox: Any = SimpleNamespace(post=posted.append)
    gang: Any = Gang("gang", Waits(), ScalingConfig(num_workers=1), mailbox)
    gang.placement_group, gang._at_workers = OWN, None
    gang._run()
    assert not removed
    assert posted[0].error.startswith("SystemExit")


def test_a_gang_that_cannot_make_its_temporary_folder_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would hear of it else, and its job would wait for it for ever."""
    posted: list[Any] = []

    def full(name: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in ("HEALTH_CHECK_INTERVAL_S", "WORKER_GROUP_START_TIMEOUT_S", "ENABLE_PREEMPTION_WATCHER"):
        monkeypatch.setenv(f"RAY_TRAIN_{name}", "1")  # It sets them for good.
    monkeypatch.setattr(gang_module, "Scratch", full)
    mailbox: Any = SimpleNamespace(post=posted.append)
    gang = Gang("gang", Waits(), ScalingConfig(num_workers=1), mailbox)
    with suppress(OSError):
        gang._run()
    [ended] = posted
    assert os.strerror(errno.ENOSPC) in ended.error
