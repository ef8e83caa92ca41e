"""Ray on a busy machine: started again where its processes came too late, and with workers that get their share."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import ray
from ray._private import node

from tests.support.refusals import mentions, refuses
from tests.support.trainers.cluster.session_start import ended  # noqa: F401  # Of every test.
from trainers.cluster.session import _LATE, _PRIVATE, STARTS, _private_settings, started
from trainers.errors import ResourcesError


def waiting(name: str) -> subprocess.Popen[bytes]:
    """A process with a word in its command line, which one that has just been started does not have yet."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


class Slow:
    """A Ray whose processes, real ones, come too late so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.processes: list[subprocess.Popen[bytes]] = []

    def __call__(self) -> None:
        self.processes.append(waiting(str(Path(ray.__file__).parent / "raylet")))
        if len(self.processes) <= self.times:
            raise Exception(f"The current node {_LATE}.")  # As Ray does.


def test_it_is_started_again_and_nothing_of_the_first_is_left(ended: list[str]) -> None:
    slow, said = Slow(times=1), list[str]()
    own = waiting("before")
    meanwhile: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        meanwhile.append(waiting("another thread's"))
        slow()

    started(start, said.append, lambda: False)
    assert ended == ["ray"]
    late, there = slow.processes
    assert [process.poll() for process in meanwhile] == [None, None], "not Ray's"
    assert late.wait(60) < 0
    assert there.poll() is None
    assert own.poll() is None, "what was there before is not Ray's"
    [line] = said
    mentions(line, "30 s", "busy")
    for process in (there, own, *meanwhile):
        process.kill()
        process.wait()


def test_after_some_starts_the_error_says_what_to_do() -> None:
    slow, said = Slow(times=99), list[str]()
    with refuses(ResourcesError, value=f"{STARTS} of {STARTS}", remedy=("30 s", "busy", "num_workers=0")):
        started(slow, said.append, lambda: False)
    assert len(slow.processes) == STARTS
    assert len(said) == STARTS - 1
    assert all(process.wait(60) < 0 for process in slow.processes)


def test_nobody_waits_for_another_start_after_ctrl_c() -> None:
    slow = Slow(times=99)
    with refuses(ResourcesError, value=f"1 of {STARTS}"):
        started(slow, lambda text: None, lambda: True)
    assert len(slow.processes) == 1


def test_other_errors_are_not_ours() -> None:
    def refuse() -> None:
        raise ValueError("no such argument")

    children = psutil.Process().children()
    with pytest.raises(ValueError, match="no such argument"):
        started(refuse, lambda text: None, lambda: False)
    assert psutil.Process().children() == children


def test_ray_still_says_it_in_these_words() -> None:
    assert _LATE in inspect.getsource(node)


@pytest.mark.parametrize("name", _PRIVATE)
@pytest.mark.parametrize("set_to", [None, "7"])
def test_a_private_ray_has_our_settings_unless_somebody_says_otherwise(
    name: str, set_to: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if set_to is None:
        monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv(name, set_to)
    with _private_settings():
        assert os.environ[name] == (set_to or "0")
    assert os.environ.get(name) == set_to
