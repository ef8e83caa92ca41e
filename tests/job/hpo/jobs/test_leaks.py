"""Jobs one after another in one process leave no file, thread or object of Warmband's behind."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from pathlib import Path

from tests.support.boosting import CHANNELS, make

OURS = ("hpo.", "trainers.", "sqlalchemy.", "rich.", "xgboost.")


def fit(name: str) -> None:
    make(workers=0, strategy="Random", strategy_config=None, max_jobs=2).fit(CHANNELS, job_name=name)


def held(home: Path) -> tuple[Counter[str], list[str], set[threading.Thread]]:
    """The living objects by class, the open files below a folder, and the threads."""
    gc.collect()
    kinds = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    open_files = [os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if _is_there(each)]
    ours = Counter({kind: count for kind, count in kinds.items() if kind.startswith(OURS)})
    return ours, [path for path in open_files if path.startswith(str(home))], {*threading.enumerate()}


def _is_there(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


def test_jobs_one_after_another_leave_nothing_behind(home: Path) -> None:
    for number in range(2):  # Caches fill.
        fit(f"warm-{number}")
    kinds, files, threads = held(home)
    for number in range(4):
        fit(f"job-{number}")
    after, files_after, threads_after = held(home)
    assert {kind: count for kind, count in (after - kinds).items() if count >= 4} == {}
    assert files_after == files
    assert len(threads_after - threads) < 4, "no job leaves one"
