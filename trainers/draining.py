"""Nodes of a Ray cluster that are about to be taken away: Ray was given notice that they are drained."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import ray

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How far apart two looks are."""

ANSWER_SECONDS = 5
"""How long the cluster's head may take to answer one."""

_DRAINING = "DRAINING"


class Notices:
    """Looks once a second, in a thread of its own, so that a head that does not answer holds nobody up.

    `nodes` and `free_there` are what the last look that was answered found; `close` ends it.

    Args:
        look: finds the same, for tests.
    """

    def __init__(self, look: Callable[[], tuple[frozenset[str], dict[str, float]]] | None = None) -> None:
        self.nodes: frozenset[str] = frozenset()
        """Hex ids of the nodes that are drained."""
        self.free_there: dict[str, float] = {}
        """What is free on them, which nobody can have."""
        self._look = look or look_at(ray.get_runtime_context().gcs_address)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drain-notices", daemon=True)
        self._thread.start()

    def free(self) -> dict[str, float]:
        """What is free on the nodes that stay."""
        free: dict[str, float] = ray.available_resources()
        return {name: max(0.0, amount - self.free_there.get(name, 0.0)) for name, amount in free.items()}

    def close(self) -> None:
        """Looks no more; a second call does nothing."""
        self._closing.set()
        self._thread.join(ANSWER_SECONDS + LOOK_SECONDS)

    def _run(self) -> None:
        failed = False
        while not self._closing.wait(LOOK_SECONDS):
            try:
                self.nodes, self.free_there = self._look()
                failed = False
            except Exception as error:  # What a head that is away raises is of many kinds.
                if not failed:
                    logger.warning("cannot look for drain notices: %s", error)
                failed = True


def look_at(address: str) -> Callable[[], tuple[frozenset[str], dict[str, float]]]:
    """What looks at the cluster whose head's address this is: the nodes that are drained, and what is free there.

    `ray.nodes()` does not tell (ray 2.60), `ray.util.state` takes the dashboard, and `ray.train.get_preemption_info`
    makes all workers of a gang wait for each other. What `ray status` shows does.
    """

    def look() -> tuple[frozenset[str], dict[str, float]]:
        from ray.autoscaler.v2.sdk import get_cluster_status

        status = get_cluster_status(address, timeout=ANSWER_SECONDS)
        drained = [node for node in (*status.active_nodes, *status.idle_nodes) if node.node_status == _DRAINING]
        free: dict[str, float] = {}
        for node in drained:
            for name, amount in node.available_resources().items():
                free[name] = free.get(name, 0.0) + amount
        return frozenset(str(node.node_id) for node in drained), free

    return look
