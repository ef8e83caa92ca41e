"""How often a leader looks at the checkpoint files of a running program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainers.script.checkpoint_reads import MOST_LOOKING, CheckpointWrites

LOOK_SECONDS = 0.5
"""What a look takes by the test's clock."""


class Clock:
    """A clock that goes on when a folder is walked."""

    def __init__(self) -> None:
        self.now, self.looks = 0.0, 0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made, walk = Clock(), os.walk

    def slow(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        made.now += LOOK_SECONDS
        made.looks += 1
        yield from walk(folder)

    monkeypatch.setattr(os, "walk", slow)
    return made


def test_looks_take_a_small_part_of_a_fast_programs_time(tmp_path: Path, clock: Clock) -> None:
    writes = CheckpointWrites(tmp_path, {}, clock)
    began, looks = clock.now, clock.looks
    for number in range(10_000):
        (tmp_path / "checkpoint").touch()
        writes.newest(surely=number > 9_998)
        clock.now += 0.01
    seconds = clock.now - began
    assert 2 <= clock.looks - looks <= seconds * MOST_LOOKING / LOOK_SECONDS + 2


def test_each_value_of_a_slow_program_is_looked_at(tmp_path: Path, clock: Clock) -> None:
    writes = CheckpointWrites(tmp_path, {}, clock)
    for number in range(5):
        (tmp_path / f"checkpoint-{number}").touch()
        os.utime(tmp_path / f"checkpoint-{number}", (number, number))
        assert writes.newest(surely=False) == number
        clock.now += LOOK_SECONDS / MOST_LOOKING


def test_a_look_that_has_to_be_sure_is_made_at_once(tmp_path: Path, clock: Clock) -> None:
    writes = CheckpointWrites(tmp_path, {}, clock)
    assert writes.newest(surely=False) is None
    (tmp_path / "checkpoint").touch()
    assert writes.newest(surely=False) is None
    assert writes.newest() == os.stat(tmp_path / "checkpoint").st_mtime
