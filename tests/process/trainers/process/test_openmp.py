"""libgomp in fresh processes: what its threads do while they wait, with a library before and after us; in a worker."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.trainers.process.openmp import fresh
from trainers.process import openmp
from trainers.process.openmp import POLICY, SPINS, VARIABLE

pytestmark = [pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc here")]


@pytest.mark.parametrize("package", ["hpo", "trainers"])
def test_it_is_there_before_any_library(package: str) -> None:
    assert fresh(f"""
        import os, json, {package}
        from trainers.process.openmp import loaded
        print(json.dumps([os.environ["{VARIABLE}"], sorted(loaded())]))
    """) == [SPINS, []]


@pytest.mark.parametrize(("name", "value"), [(VARIABLE, "7"), (POLICY, "active")])
def test_who_sets_either_decides(name: str, value: str) -> None:
    """Where a library is there already, as well."""
    script = f"""
        import xgboost, os, json, threading
        import hpo
        from trainers.process.openmp import calm_loaded
        calm_loaded()
        print(json.dumps([os.environ.get("{VARIABLE}"), os.environ.get("{POLICY}"), threading.active_count()]))
    """
    asked = {VARIABLE: None, POLICY: None, name: value}
    assert fresh(script, **{name: value}) == [asked[VARIABLE], asked[POLICY], 1]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one CPU, libgomp spins less by itself")
@pytest.mark.parametrize("library", ["xgboost", "torch", "sklearn.ensemble"])
def test_threads_sleep_sooner_with_it_and_once_they_are_calmed(library: str) -> None:
    """It fails where a library's copy of libgomp does not do what its manual says: see `trainers/process/openmp.py`."""
    set_before = fresh(f"""
        import hpo, {library}
        from trainers.process.openmp import calm_loaded, loaded
        [path] = loaded()
        print(json.dumps(spun(path)))
    """)
    before, calmed, threads = fresh(f"""
        import {library}, hpo, threading
        from trainers.process.openmp import calm_loaded, loaded
        [path] = loaded()
        before = spun(path)
        calm_loaded()
        calm_loaded()
        def again():  # The team of the thread that calls is there already: another's starts anew.
            calmed.append(spun(path))
        calmed = []
        thread = threading.Thread(target=again)
        thread.start()
        thread.join()
        names = [thread.name for thread in threading.enumerate()]
        print(json.dumps([before, calmed[0], names.count("openmp-parked")]))
    """)
    assert threads == 1, "a second call does nothing"
    assert set_before < before / 4
    assert calmed < before / 4


@pytest.mark.parametrize("room", [0, 2])
def test_nothing_is_parked_where_threads_are_limited(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libgomp would end the process."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if len(started) == room:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    assert openmp._may_start(3)
    monkeypatch.setattr(threading.Thread, "start", limited)
    assert not openmp._may_start(3)
    assert not any(thread.is_alive() for thread in started)


def test_a_copy_that_cannot_be_opened_holds_nothing_up() -> None:
    parked = threading.Event()
    openmp._park("/nowhere/libgomp.so.1", parked)
    assert parked.is_set()
