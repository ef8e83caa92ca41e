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
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.programs import missing, remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What the tests of one folder may take.

    Args:
        meaning: one line for `pytest --markers`.
        permits: the needs that its tests may have, of `NEEDS`.
        seconds: the limit of computing and sleeping per test; a busy machine adds to neither.
    """

    meaning: str
    permits: frozenset[str]
    seconds: float = float("inf")


NEEDS = ("job", "process", "ray", "system")
"""A whole tuning job or training in this process; Python processes; a Ray cluster; programs beside Python's packages.

Each is the name of the tier that permits it and those before it.
"""

_ALL = frozenset(NEEDS)

TIERS = {
    "unit": Tier(meaning="pure logic: no whole job, no process", permits=frozenset(), seconds=0.3),
    "job": Tier(meaning="whole jobs and searches in this process", permits=frozenset({"job"}), seconds=15.0),
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


@dataclass(slots=True)
class Taken:
    """What one test has taken so far.

    Args:
        tier: its tier.
        thorough: whether it is a property that is tried with more examples than `make test` tries.
        began: processor seconds of this process as it began.
        programs: needs, and what showed each.
        slept: seconds that it asked to sleep, in all of its threads.
    """

    tier: str
    thorough: bool = False
    began: float = field(default_factory=time.process_time)
    programs: set[tuple[str, str]] = field(default_factory=set)
    slept: float = 0.0

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
        """Return the mark that the test needs, and what it took beyond its tier; empty if nothing."""
        tier = TIERS[self.tier]
        for need, shown in sorted(self.programs, key=lambda pair: NEEDS.index(pair[0])):
            if need not in tier.permits:
                return f"{_move(need)}: {shown}"
        seconds = time.process_time() - self.began + self.slept
        if seconds > tier.seconds and not self.thorough:
            next_tier = {"unit": "job", "job": "long"}[self.tier]
            return (
                f"{_move(next_tier)}, or make it smaller: it computed and slept for {seconds:.2f} s, and a test with "
                f"the mark {self.tier} may take {tier.seconds:g} s"
            )
        return ""


def _move(tier: str) -> str:
    return f"mark it {tier} by moving it to tests/{tier}/"


_current: Taken | None = None
_started: dict[tuple[str, str], set[tuple[str, str]]] = {}
"""What shared fixtures started, by where they stand and name: whichever test comes first, all that use one need it."""


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


_sleep = time.sleep


def _slept(seconds: float) -> None:
    _sleep(seconds)
    if _current is not None and threading.current_thread() is threading.main_thread():
        _current.slept += seconds


_wait = threading.Condition.wait


def _waited(condition: threading.Condition, timeout: float | None = None) -> bool:
    """Count a wait of events and queues that ran out as sleep."""
    there = _wait(condition, timeout)
    if not there and timeout and _current is not None and threading.current_thread() is threading.main_thread():
        _current.slept += timeout
    return there


class _Free:
    """A block that counts for no test, since whichever test comes first would pay for all; blocks may be nested."""

    depth = 0
    began = 0.0
    slept = 0.0

    def __enter__(self) -> None:
        if _Free.depth == 0 and _current is not None:
            _Free.began, _Free.slept = time.process_time(), _current.slept
        _Free.depth += 1

    def __exit__(self, *_: object) -> None:
        _Free.depth -= 1
        if _Free.depth == 0 and _current is not None and _Free.began >= _current.began:
            _current.began += time.process_time() - _Free.began
            _current.slept = _Free.slept


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
        time.sleep = _slept
        threading.Condition.wait = _waited  # type: ignore[method-assign]
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
    """Note what a test takes, its fixtures included."""
    global _current
    if _MISPLACED in item.stash:
        return (yield)
    thorough = item.get_closest_marker("hypothesis") is not None and settings.get_current_profile_name() != "quick"
    tier = "system" if item.config.getoption("--database", "sqlite") == "postgresql" else tier_of(item.path)
    _current = Taken(tier, thorough)
    try:
        return (yield)
    finally:
        _current = None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Note what a shared fixture starts; its computing counts for no test."""
    if _current is None or fixturedef.scope == "function":
        return (yield)
    before = set(_current.programs)
    try:
        with _free:
            return (yield)
    finally:
        where = fixturedef.baseid, fixturedef.argname
        _started.setdefault(where, set()).update(_current.programs - before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that took more than its tier permits."""
    result = yield
    if _current is None:
        return result
    for (where, name), programs in _started.items():
        if name in getattr(item, "fixturenames", ()) and item.nodeid.startswith(where):
            _current.programs |= programs
    if excess := _current.excess():
        pytest.fail(excess, pytrace=False)
    return result
