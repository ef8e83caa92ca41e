"""The Ray cluster that a job runs on: the one that is there, or one on this machine that ends with the job."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray

from trainers.reach import Reach

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Cluster:
    """The cluster that a job runs on.

    Args:
        private: it was started for the job, and ends with all that runs on it.
        reach: what workers have to see of the driver's machine, on each of its nodes.
    """

    private: bool
    reach: Reach = Reach()  # noqa: RUF009  # It is frozen.


@contextmanager
def cluster(cpus: int, notify: Callable[[str], None] = logger.info, *, verbose: bool = False) -> Iterator[Cluster]:
    """Runs a block on a Ray cluster.

    A session of Ray's that is open in this process is used and left open. Otherwise the cluster that `RAY_ADDRESS`
    names is joined and left. Otherwise Ray is started here, with at least `cpus` logical CPUs so that a laptop holds
    what was asked for, and ended behind the block. A cluster that merely runs on this machine is not joined: it may be
    another job's own, and end with it.

    Args:
        cpus: logical CPUs that the job could use at once.
        notify: is told what was started.
        verbose: show Ray's own logs and what workers print; else its errors alone.
    """
    if ray.is_initialized():
        yield Cluster(private=False)
        return
    found = Cluster(private=not os.environ.get("RAY_ADDRESS"))
    shown: dict[str, Any] = {
        "logging_level": logging.INFO if verbose else logging.ERROR,
        "log_to_driver": verbose,
    }
    try:
        if not found.private:
            ray.init(**shown)
        else:
            cores = os.cpu_count() or 1
            # The dashboard costs seconds of start-up; whoever wants it runs `ray start --head` and sets RAY_ADDRESS.
            ray.init(address="local", num_cpus=max(cpus, cores), include_dashboard=False, **shown)
            notify(f"Started Ray on this machine: {max(cpus, cores)} logical CPUs on {cores} cores")
        yield found
    finally:
        ray.shutdown()
