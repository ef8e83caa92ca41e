"""The Ray cluster that a job runs on: the one that is there, or one on this machine that ends with the job."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import ray

logger = logging.getLogger(__name__)


@contextmanager
def cluster(cpus: int, notify: Callable[[str], None] = logger.info) -> Iterator[None]:
    """Runs a block on a Ray cluster.

    A session of Ray's that is open in this process is used and left open. Otherwise the cluster at `RAY_ADDRESS`, or
    one that runs on this machine, is joined and left. Otherwise Ray is started here, with at least `cpus` logical CPUs
    so that a laptop holds what was asked for, and ended behind the block.

    Args:
        cpus: logical CPUs that the job could use at once.
        notify: is told what was started.
    """
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address="auto", logging_level=logging.ERROR, log_to_driver=False)
    except ConnectionError:
        cores = os.cpu_count() or 1
        # The dashboard costs seconds of start-up; whoever wants it runs `ray start --head` first.
        ray.init(
            address="local",
            num_cpus=max(cpus, cores),
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
        )
        notify(f"Ray was not running: started it on this machine, {max(cpus, cores)} logical CPUs on {cores} cores")
    try:
        yield
    finally:
        ray.shutdown()


def home() -> str:
    """The folder that holds what Warmband keeps on this machine: `WARMBAND_HOME`, or `~/.warmband`."""
    return os.environ.get("WARMBAND_HOME") or os.path.expanduser("~/.warmband")
