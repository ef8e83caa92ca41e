"""libgomp in fresh processes: what its threads do while they wait, with a library before and after us; in a worker."""

from __future__ import annotations

import json
import os
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import printed
from trainers.process import openmp
from trainers.process.openmp import POLICY, SPINS, VARIABLE

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc here"),
]

SPUN = """
    import ctypes, json, os, time
    from pathlib import Path

    TASKS = Path("/proc/self/task")

    def spun(path):
        '''How many processor seconds a thread takes for one wait, from work to sleep, the median of 9.'''
        runtime, free = ctypes.CDLL(path), ctypes.CDLL(None).free
        before = set(os.listdir(TASKS))
        runtime.GOMP_parallel(free, None, 2, 0)
        [thread] = set(os.listdir(TASKS)) - before
        taken = []
        for _ in range(9):
            used = asleep(TASKS / thread)
            runtime.GOMP_parallel(free, None, 2, 0)
            taken.append(asleep(TASKS / thread) - used)
        return sorted(taken)[4]

    def asleep(task):
        '''Waits until it sleeps; the processor seconds that it has used.'''
        deadline = time.monotonic() + 60
        # Twice, a little apart: until it has begun to work it sleeps as well.
        while [state(task), time.sleep(0.01), state(task)] != ["S", None, "S"]:
            assert time.monotonic() < deadline, "waited 60 s for an OpenMP thread to sleep"
        return int((task / "schedstat").read_text().split()[0]) / 1e9

    def state(task):
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
"""
"""Needs a machine with two CPUs: with fewer, libgomp spins less by itself."""


def fresh(script: str, timeout: float = 300, **environment: str) -> Any:
    """What a script prints in a process of its own, without our setting or the user's."""
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, POLICY)}
    code = textwrap.dedent(SPUN) + textwrap.dedent(script)
    return json.loads(printed(code, environment={**kept, **environment}, seconds=timeout).splitlines()[-1])


# ---- the setting


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


# ---- what it does to the copies of libgomp in wheels


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


MODEL = """
    import hashlib
    from experiments.shared.blog import STATIC
    from ray.train import ScalingConfig
    from trainers import XGBoostTrainer
    from trainers.datasets import load
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 2})
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, "num_round": 2, "subsample": 0.7})
    data = load("bank-marketing-synthetic")
    result = trainer.fit({"train": data.train, "validation": data.validation})
    print(json.dumps(hashlib.sha256(Path(result.checkpoint).read_bytes()).hexdigest()))
"""


@pytest.mark.long
def test_models_are_the_same_to_the_byte(home: Path) -> None:
    kept = {"WARMBAND_HOME": str(home)}
    spinning = fresh(MODEL, **kept, GOMP_SPINCOUNT="300000")
    assert fresh(MODEL, **kept) == spinning
    assert fresh("import xgboost\n" + textwrap.dedent(MODEL), **kept) == spinning, "calmed"


# ---- in a real worker


@pytest.mark.long
@pytest.mark.ray
def test_a_worker_has_it_before_any_library(home: Path) -> None:
    """On a cluster whose processes do not have it: Ray was started by somebody else."""
    noted = home / "noted.json"
    home.mkdir()
    assert (
        fresh(
            f"""
        import ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        assert "{VARIABLE}" not in os.environ
        import numpy
        from ray.train import ScalingConfig
        from trainers import XGBoostTrainer
        from trainers.process import openmp
        from trainers.xgboost.program import XGBoostProgram

        class Noting(XGBoostProgram):
            def open(self, context):
                told = [os.environ.get("{VARIABLE}"), sorted(openmp.loaded()), os.getpid()]
                Path({str(noted)!r}).write_text(json.dumps(told))
                return super().open(context)

        class Trainer(XGBoostTrainer):
            def program(self, channels):
                return Noting(channels)

        static = {{"objective": "binary:logistic", "eval_metric": "auc", "num_round": 2}}
        rows = numpy.random.default_rng(0).random((60, 3)).round()
        trainer = Trainer(scaling=ScalingConfig(num_workers=1), hyperparameters=static)
        trainer.fit({{"train": rows, "validation": rows}})
        print(json.dumps(os.getpid()))
        ray.shutdown()
    """,
            WARMBAND_HOME=str(home),
        )
        != json.loads(noted.read_text())[2]
    )
    assert json.loads(noted.read_text())[:2] == [SPINS, []]
