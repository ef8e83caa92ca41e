"""A pytest plugin: a test's folder is its tier, and a test that takes more than its tier permits fails.

`tests/unit/hpo/test_ranking.py` has the mark `unit`. The tiers and what they permit are in `TIERS`.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing.util
import os
import platform
import re
import select
import selectors
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.programs import missing, remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What the tests of one folder may take.

    Args:
        meaning: one line for `pytest --markers`.
        permits: the needs that its tests may have, of `NEEDS`.
        seconds: the limit of computing and sleeping per test, with what it alone sets up and takes down; a busy
            machine adds to neither.
        shared: the limit of a shared fixture, likewise.
    """

    meaning: str
    permits: frozenset[str]
    seconds: float = float("inf")
    shared: float = float("inf")


BUSY = 3
"""A test fails above so many times its limit: beside other processes the same work takes two to three times as long."""
NEEDS = ("job", "process", "ray", "system")
"""A whole tuning job or training in this process; Python processes; a Ray cluster; programs beside Python's packages.

Each is the name of the tier that permits it and those before it.
"""

_ALL = frozenset(NEEDS)

TIERS = {
    "unit": Tier(meaning="pure logic: no whole job, no process", permits=frozenset(), seconds=0.3, shared=5.0),
    "job": Tier(
        meaning="whole jobs and searches in this process", permits=frozenset({"job"}), seconds=15.0, shared=30.0
    ),
    "process": Tier(meaning="starts processes of Python's", permits=frozenset({"job", "process"})),
    "ray": Tier(meaning="uses a Ray cluster", permits=frozenset({"job", "process", "ray"})),
    "system": Tier(
        meaning="needs Chromium, PostgreSQL, Prometheus, network namespaces or a C++ compiler", permits=_ALL
    ),
    "smoke": Tier(
        meaning="a real job of each trainer, and a job that is killed and resumed; `make test` runs these beside unit",
        permits=frozenset({"job", "process", "ray"}),
    ),
    "long": Tier(meaning="a minute or more of processor time; `make test-long`", permits=_ALL),
    "frameworks": Tier(meaning="needs the packages of the extra of this name; `make test-frameworks`", permits=_ALL),
    "containers": Tier(meaning="builds and runs docker/'s images; `make test-containers`", permits=_ALL),
    "clients": Tier(meaning="runs SageMaker's own clients; `make test-clients`", permits=_ALL),
}
"""By the names of their folders in `tests/` and of their marks."""

FIXTURES = {
    "google": "process",
    "ray_cluster": "ray",
    "postgres": "system",
    "chromium": "system",
    "cluster": "system",
}
"""Shared fixtures whose processes an earlier test may have started, and the need of the tests that use one."""

RAY = {"raylet", "gcs_server"}
PYTHON = re.compile(r"python[\d.]*")
POSIX = {"sh", "bash", "env", "true", "sleep", "kill"}
ROOT = Path(__file__).resolve().parents[1]


_OWN = tuple(prefix for prefix in (sys.prefix, sys.base_prefix) if prefix != "/usr")


def tier_of(path: Path) -> str:
    """Return the tier of a test module, or an empty string if it is in no tier's folder."""
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else path.parts[-2:]
    return parts[0] if parts and parts[0] in TIERS else ""


@dataclass(slots=True, eq=False)
class Taken:
    """What one test, or one fixture that tests share, has taken so far.

    Args:
        name: its name.
        tier: its tier; a shared fixture has that of the test that came first.
        thorough: whether it is a property that is tried with more examples than `make test` tries.
        programs: needs, and what showed each.
        seconds: what it computed, and asked to sleep in the main thread.
        began: processor seconds of this process since when it is counted; None while nothing counts for it.
        within: what was counted before it, and is again after it.
        shared: what the shared fixtures that it uses have taken.
        ended: what the shared fixtures have taken that were taken down after it.
        failed: whether it has failed, or the tests that use this fixture have: no other failure is needed.
    """

    name: str
    tier: str
    thorough: bool = False
    programs: set[tuple[str, str]] = field(default_factory=set)
    seconds: float = 0.0
    began: float | None = None
    within: Taken | None = None
    shared: set[Taken] = field(default_factory=set)
    ended: set[Taken] = field(default_factory=set)
    failed: bool = False

    def begin(self) -> None:
        """Count for this from here on, and for nothing else."""
        global _current
        self.within, _current = _current, self
        if self.within is not None:
            self.within.pause()
        self.resume()

    def end(self) -> None:
        """Count again for what was counted before."""
        global _current
        self.pause()
        _current = self.within
        if _current is not None:
            _current.resume()

    def pause(self) -> None:
        """Count nothing from here on."""
        if self.began is not None:
            self.seconds += time.process_time() - self.began
            self.began = None

    def resume(self) -> None:
        """Count from here on."""
        if self.began is None:
            self.began = time.process_time()

    def start(self, path: str) -> None:
        """Note that the test starts a program."""
        name = os.path.basename(path)
        if name == "uname":  # Python's `platform` asks it once in a process, for whoever comes first.
            return
        if name in RAY:
            need = "ray"
        elif name in POSIX or PYTHON.fullmatch(name) or path.startswith(_OWN):
            need = "process"
        else:
            need = "system"
        self.programs.add((need, f"it started {name}"))

    def excess(self) -> str:
        """Return the mark that the test needs, and what was taken beyond its tier; empty if nothing."""
        tier = TIERS[self.tier]
        # Whichever test comes first starts what a shared fixture starts: all that use one need it.
        programs = self.programs.union(*(fixture.programs for fixture in self.shared))
        for need, shown in sorted(programs, key=lambda pair: NEEDS.index(pair[0])):
            if need not in tier.permits:
                return f"{_move(need)}: {shown}"
        if self.seconds > BUSY * tier.seconds and not self.thorough:
            return (
                f"{_move(_NEXT[self.tier])}, or make it smaller: {self.name} computed and slept for "
                f"{self.seconds:.2f} s, its own fixtures included, and a test with the mark {self.tier} may take "
                f"{tier.seconds:g} s on a quiet machine"
            )
        fixtures = [(fixture, self.tier) for fixture in self.shared] + [(each, each.tier) for each in self.ended]
        for fixture, mark in fixtures:
            if fixture.seconds > BUSY * TIERS[mark].shared:
                return (
                    f"{_move(_NEXT[mark])}, or make the fixture {fixture.name} smaller: it computed and slept for "
                    f"{fixture.seconds:.2f} s, and a shared fixture of a test with the mark {mark} may take "
                    f"{TIERS[mark].shared:g} s"
                )
        return ""


_NEXT = {"unit": "job", "job": "long"}


def _move(tier: str) -> str:
    return f"mark it {tier} by moving it to tests/{tier}/"


_current: Taken | None = None
_taken: dict[pytest.FixtureDef[Any], Taken] = {}
"""What each shared fixture has taken."""


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    if _current is None:
        return
    if event == "subprocess.Popen":
        _current.start(os.fsdecode(arguments[0]))  # type: ignore[arg-type]
    elif event in ("os.fork", "os.forkpty", "os.posix_spawn", "os.system"):
        _current.programs.add(("process", f"it called {event}"))


_spawn = multiprocessing.util.spawnv_passfds


def _spawned(path: bytes, arguments: list[bytes], descriptors: list[int]) -> int:
    """Note a process that `multiprocessing` spawns: Python raises no audit event for it."""
    if _current is not None:
        _current.start(os.fsdecode(path))
    return _spawn(path, arguments, descriptors)


def _counted(wait: Callable[..., Any], ran_out: Callable[..., bool]) -> Callable[..., Any]:
    """Return a wait that counts, where it runs out, as sleep of the seconds that it was asked to wait.

    One that something ends does not count: how long that takes depends on the machine.
    """

    @wraps(wait)
    def counted(*arguments: Any, **named: Any) -> Any:
        answer = wait(*arguments, **named)
        if _current is None or _current.began is None or threading.current_thread() is not threading.main_thread():
            return answer
        seconds = [*arguments, *named.values()][-1]
        if isinstance(seconds, int | float) and seconds > 0 and ran_out(answer, *arguments):
            _current.seconds += seconds
        return answer

    return counted


def _count_waits() -> None:
    """Count Python's own waits; asyncio and `multiprocessing` wait by selectors, events and queues by conditions."""
    for owner, name, ran_out in (
        (time, "sleep", lambda *_: True),
        (threading.Condition, "wait", lambda there, *_: not there),
        (threading.Thread, "join", lambda _, thread, *__: thread.is_alive()),
        (select, "select", lambda ready, *_: not any(ready)),
        (selectors.PollSelector, "select", lambda ready, *_: not ready),
        (selectors.DefaultSelector, "select", lambda ready, *_: not ready),
    ):
        setattr(owner, name, _counted(getattr(owner, name), ran_out))


class _Free:
    """A block that counts for no test, since whichever test comes first would pay for all; blocks may be nested."""

    depth = 0
    paused: Taken | None = None

    def __enter__(self) -> None:
        if _Free.depth == 0 and _current is not None and _current.began is not None:
            _Free.paused = _current
            _current.pause()
        _Free.depth += 1

    def __exit__(self, *_: object) -> None:
        _Free.depth -= 1
        if _Free.depth == 0 and _Free.paused is not None:
            if _Free.paused is _current:
                _current.resume()
            _Free.paused = None


_free = _Free()


def _collected(phase: str, _: dict[str, int]) -> None:
    """Count no garbage collection: a test pays for what the tests before it left."""
    if phase == "start":
        _free.__enter__()
    else:
        _free.__exit__()


_load = importlib._bootstrap._find_and_load  # type: ignore[attr-defined]


def _loaded(name: str, import_: object) -> object:
    """Count no import, and watch jobs once they can be run."""
    if threading.current_thread() is not threading.main_thread():
        return _load(name, import_)
    with _free:
        module = _load(name, import_)
    jobs = sys.modules.get("hpo.jobs.run")
    if jobs is not None and hasattr(jobs, "Job") and not hasattr(jobs.Job.run, "__wrapped__"):
        jobs.Job.run = _watched(jobs.Job.run)
    return module


# A warning's stacklevel counts no frame of importlib, and knows these by the name of their file.
_loaded.__code__ = _loaded.__code__.replace(co_filename="<importlib._bootstrap, by tests/support/tiers.py>")


def _watched(run: Callable[..., object]) -> Callable[..., object]:
    @wraps(run)
    def watched(*arguments: object) -> object:
        if _current is not None:
            _current.programs.add(("job", "it ran a whole job"))
        return run(*arguments)

    return watched


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and begin to listen; a hook that Python audits with cannot be taken away."""
    for name, tier in TIERS.items():
        config.addinivalue_line("markers", f"{name}: tests/{name}/: {tier.meaning}")
    if not getattr(sys, "_warmband_tests_listen", False):
        platform.processor()  # Starts `uname` for whoever asks first in a process, which is no test's doing.
        sys._warmband_tests_listen = True  # type: ignore[attr-defined]
        sys.addaudithook(_heard)
        multiprocessing.util.spawnv_passfds = _spawned
        _count_waits()
        pytest.FixtureDef.execute = _executed  # type: ignore[method-assign]
        importlib._bootstrap._find_and_load = _loaded  # type: ignore[attr-defined]
        gc.callbacks.append(_collected)
        gc.disable()  # Until all is imported: `pytest_collection_finish`.


_MISPLACED = pytest.StashKey[str]()
"""Why a test must not run where it is, and the mark that it needs."""


@pytest.hookimpl(tryfirst=True)  # Before pytest selects by marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its tier, and note tests in no tier and fixtures that a tier does not permit."""
    for item in items:
        tier = tier_of(item.path)
        if not tier:
            item.stash[_MISPLACED] = (
                f"it has no mark: move it to one of {', '.join(f'tests/{name}/' for name in TIERS)}"
            )
            continue
        for mark in item.iter_markers():
            if mark.name in TIERS and mark.name != tier:
                item.stash[_MISPLACED] = f"{_move(mark.name)}: it is in tests/{tier}/"
        item.add_marker(tier)
        for name in getattr(item, "fixturenames", ()):
            if name in FIXTURES and FIXTURES[name] not in TIERS[tier].permits:
                item.stash[_MISPLACED] = f"{_move(FIXTURES[name])}: it uses {name}"
    # Two processes share the files: what takes long is begun first, and short ones fill up the end.
    order = ("long", "system", "smoke", "ray", "process", "job", "unit")
    items.sort(key=lambda item: order.index(tier) if (tier := tier_of(item.path)) in order else -1)


def pytest_sessionstart(session: pytest.Session) -> None:
    """End the run before its first test if programs are missing that the tests of its folders need."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    tiers = {tier_of(Path(argument.partition("::")[0]).resolve()) for argument in session.config.args}
    database = session.config.getoption("--database", "sqlite")
    if (tiers & {"", "system", "long"} or database == "postgresql") and (names := missing()):
        pytest.exit(remedy(names), returncode=pytest.ExitCode.USAGE_ERROR)


def pytest_collection_finish() -> None:
    """Keep all imported modules out of garbage collections, which take most of a second then."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test that must not run where it is."""
    if reason := item.stash.get(_MISPLACED, ""):
        pytest.fail(reason, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test takes, its own fixtures and their taking down included."""
    if _MISPLACED in item.stash:
        return (yield)
    thorough = item.get_closest_marker("hypothesis") is not None and settings.get_current_profile_name() != "quick"
    tier = "system" if item.config.getoption("--database", "sqlite") == "postgresql" else tier_of(item.path)
    taken = Taken(item.name, tier, thorough)
    taken.begin()
    try:
        return (yield)
    finally:
        taken.end()


_execute = pytest.FixtureDef.execute


def _executed(fixture: pytest.FixtureDef[Any], request: Any) -> Any:
    """Note that a test, or a shared fixture, uses a shared fixture, which an earlier test may have set up."""
    try:
        return _execute(fixture, request)
    finally:
        if _current is not None and fixture in _taken:
            _current.shared |= {_taken[fixture], *_taken[fixture].shared}


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Count what a shared fixture takes for itself, its taking down included."""
    if _current is None or fixturedef.scope == "function":
        return (yield)
    taken = _taken[fixturedef] = Taken(fixturedef.argname, _current.tier)

    def ended() -> None:
        taken.end()
        if _current is not None and not taken.failed:
            _current.ended.add(taken)

    fixturedef.addfinalizer(ended)  # The last one added is called first.
    taken.begin()
    try:
        return (yield)
    finally:
        taken.end()
        taken.failed = taken.seconds > BUSY * TIERS[taken.tier].shared
        fixturedef.addfinalizer(taken.begin)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # It comes after pytest, which forgives an expected failure.
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that took more than its tier permits, be it passed, skipped or expected to fail."""
    with _free:
        report = yield
    if call.when == "setup":
        if _MISPLACED in item.stash:
            report.outcome = "failed"
    elif _current is not None and not _current.failed and not report.failed and (excess := _current.excess()):
        call.excinfo = pytest.CallInfo.from_call(partial(pytest.fail, excess, pytrace=False), call.when).excinfo
        report = pytest.TestReport.from_item_and_call(item, call)
    if _current is not None and report.failed:
        _current.failed = True
    return report
