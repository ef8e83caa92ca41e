"""A pytest plugin: each test says by a mark what it needs, and a test that takes more fails.

A test without one of these marks is marked `unit`: it starts neither Ray nor any process, and takes at most 15 s.
"""

from __future__ import annotations

import multiprocessing.util
import os
import platform
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

from tests.support.programs import missing, remedy

NEEDS = {
    "process": "starts processes of Python's",
    "ray": "uses a Ray cluster",
    "system": "needs a program beside Python's: a browser, PostgreSQL, Prometheus, network namespaces, a C++ compiler",
}
"""The marks of tests that are no unit tests, and what each permits; the last two permit processes as well."""

RANKS = tuple(NEEDS)
"""By what they take, the least first."""

UNIT_SECONDS = 15.0
"""How long a unit test may compute and sleep: three times what one takes on a slow machine, since processors differ.

A busy machine does not count: it adds to neither.
"""

FIXTURES = {"google": "process", "ray_cluster": "ray", "postgres": "system", "chromium": "system", "cluster": "system"}
"""Shared fixtures whose processes an earlier test may have started, and the mark of the tests that use one."""

RAY = {"raylet", "gcs_server"}
POSIX = {"sh", "bash", "env", "true", "sleep", "kill"}


@dataclass(slots=True)
class Taken:
    """What one test has taken so far.

    Args:
        marks: the needs that it named.
        began: processor seconds of this process as it began.
        programs: those that it started, by need.
        slept: seconds that it asked to sleep, in all of its threads.
    """

    marks: frozenset[str]
    began: float = field(default_factory=time.process_time)
    programs: set[tuple[str, str]] = field(default_factory=set)
    slept: float = 0.0

    def start(self, path: str) -> None:
        """It starts a program."""
        name = os.path.basename(path)
        if name == "uname":  # Python's `platform` asks it once in a process, for whoever comes first.
            return
        if name in RAY:
            need = "ray"
        elif name in POSIX or path.startswith((sys.prefix, sys.base_prefix)):
            need = "process"
        else:
            need = "system"
        self.programs.add((need, name))

    def excess(self) -> str:
        """What it took without a mark that permits it, in a sentence; empty if nothing."""
        for need, name in sorted(self.programs):
            if not self.marks & PERMITTED_BY[need]:
                return f"it started {name}: mark it @pytest.mark.{need}"
        seconds = time.process_time() - self.began + self.slept
        if not self.marks and seconds > UNIT_SECONDS:
            return (
                f"a unit test may compute and sleep for {UNIT_SECONDS:.0f} s, and this one took {seconds:.1f} s; "
                "make it smaller, or mark what it needs"
            )
        return ""


PERMITTED_BY = {"process": {"process", "ray", "system"}, "ray": {"ray", "system"}, "system": {"system"}}
"""The marks that permit what each need names."""


_current: Taken | None = None
_started: dict[tuple[str, str], set[tuple[str, str]]] = {}
"""What shared fixtures started, by where they stand and name: whichever test comes first, all that use one need it."""


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    if _current is None:
        return
    if event == "subprocess.Popen":
        _current.start(os.fsdecode(arguments[0]))  # type: ignore[arg-type]
    elif event in ("os.fork", "os.forkpty", "os.posix_spawn", "os.system"):
        _current.programs.add(("process", event))


_spawn = multiprocessing.util.spawnv_passfds


def _spawned(path: bytes, arguments: list[bytes], descriptors: list[int]) -> int:
    """Python audits no process that `multiprocessing` spawns."""
    if _current is not None:
        _current.start(os.fsdecode(path))
    return _spawn(path, arguments, descriptors)


_sleep = time.sleep


def _slept(seconds: float) -> None:
    if _current is not None:
        _current.slept += seconds
    _sleep(seconds)


_wait = threading.Condition.wait


def _waited(condition: threading.Condition, timeout: float | None = None) -> bool:
    """A wait that ran out is a sleep: events, joins with a deadline and queues wait so."""
    there = _wait(condition, timeout)
    if not there and timeout and _current is not None and threading.current_thread() is threading.main_thread():
        _current.slept += timeout
    return there


def pytest_configure(config: pytest.Config) -> None:
    """Names the marks, and begins to listen; a hook that Python audits with cannot be taken away."""
    for mark, meaning in {"unit": "needs nothing: added to tests without another need", **NEEDS}.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    if not getattr(sys, "_warmband_tests_listen", False):
        platform.processor()  # Starts `uname` for whoever asks first in a process, which is no test's doing.
        sys._warmband_tests_listen = True  # type: ignore[attr-defined]
        sys.addaudithook(_heard)
        multiprocessing.util.spawnv_passfds = _spawned
        time.sleep = _slept
        threading.Condition.wait = _waited  # type: ignore[method-assign]


def needs_of(item: pytest.Item) -> frozenset[str]:
    """The needs that a test names."""
    return frozenset(mark.name for mark in item.iter_markers() if mark.name in NEEDS)


@pytest.hookimpl(tryfirst=True)  # Before pytest selects by marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the unit tests, puts files of many needs first, and refuses tests that use a fixture without its mark."""
    wrong = []
    largest: dict[object, int] = {}
    for item in items:
        needs = needs_of(item)
        if not needs:
            item.add_marker("unit")
        ranks = [RANKS.index(need) for need in needs]
        largest[item.path] = max(largest.get(item.path, -1), *ranks, -1)
        for name in getattr(item, "fixturenames", ()):
            if name in FIXTURES and FIXTURES[name] not in needs:
                wrong.append(f"{item.nodeid} uses {name}: mark it @pytest.mark.{FIXTURES[name]}")
    if wrong:
        raise pytest.UsageError("\n".join(wrong))
    # Two processes share the files: what takes long is begun first, and short ones fill up the end.
    items.sort(key=lambda item: -largest[item.path])


@pytest.hookimpl(trylast=True)  # Behind the selection.
def pytest_collection_finish(session: pytest.Session) -> None:
    """Ends the run before its first test if programs are missing that its tests need."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    if any("system" in needs_of(item) for item in session.items) and (names := missing()):
        pytest.exit(remedy(names), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Notes what a test takes, its fixtures included."""
    global _current
    _current = Taken(needs_of(item))
    try:
        return (yield)
    finally:
        _current = None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Notes what a shared fixture starts."""
    before = set(_current.programs) if _current is not None else set()
    try:
        return (yield)
    finally:
        if _current is not None and fixturedef.scope != "function":
            where = fixturedef.baseid, fixturedef.argname
            _started.setdefault(where, set()).update(_current.programs - before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test that took more than its marks permit."""
    result = yield
    if _current is None:
        return result
    for (where, name), programs in _started.items():
        if name in getattr(item, "fixturenames", ()) and item.nodeid.startswith(where):
            _current.programs |= programs
    if excess := _current.excess():
        pytest.fail(excess, pytrace=False)
    return result
