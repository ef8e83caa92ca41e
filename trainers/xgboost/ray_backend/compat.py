"""Adapter to xgboost_ray's internals: its tracker, made with current XGBoost's.

xgboost_ray 0.1.19, its last release, builds on the tracker that XGBoost had before 2.1, with other arguments and other
methods. `mend` replaces the two functions that start and stop it, in the process that calls `xgboost_ray.train`.
XGBoost's workers also get the ranks of xgboost_ray's actors: it would name them by addresses in memory, and leave the
order in which their sums are added up, so the last digits of a model, to chance.

tests/job/trainers/xgboost/test_ray_backend_compat.py fails when either package is not what this was written for.
"""

from __future__ import annotations

import contextlib
from typing import Any

import xgboost
from ray.util import get_node_ip_address
from xgboost.tracker import RabitTracker
from xgboost_ray import main
from xgboost_ray.session import get_actor_rank

TESTED = {"ray": "2.60.0", "xgboost": "3.2.0", "xgboost_ray": "0.1.19"}
"""The versions that this was tested on."""

STOP_SECONDS = 5
"""How long the tracker may wait for workers to say that they are done; dead ones never do."""

_TASK_ID = "DMLC_TASK_ID"


class RankedArguments(dict[str, Any]):
    """Arguments by which an actor joins its peers, under the actor's rank whatever name xgboost_ray gives it."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, f"{get_actor_rank():08d}" if key == _TASK_ID else value)


def start_tracker(num_workers: int) -> tuple[RabitTracker, RankedArguments]:
    """Starts XGBoost's tracker; in place of `xgboost_ray.main._start_rabit_tracker`."""
    tracker = RabitTracker(n_workers=num_workers, host_ip=get_node_ip_address(), sortby="task")
    tracker.start()
    return tracker, RankedArguments(tracker.worker_args())


def stop_tracker(tracker: RabitTracker) -> None:
    """Waits for the tracker's end, then ends it; in place of `xgboost_ray.main._stop_rabit_tracker`."""
    # Where workers died, it complains of it, both times.
    with contextlib.suppress(ValueError, xgboost.core.XGBoostError):
        tracker.wait_for(timeout=STOP_SECONDS)
    with contextlib.suppress(xgboost.core.XGBoostError):
        tracker.free()


def mend() -> None:
    """Makes `xgboost_ray.train` work in this process; a second call changes nothing."""
    main._start_rabit_tracker = start_tracker
    main._stop_rabit_tracker = stop_tracker
