"""Nodes of a Ray cluster by its status: notices of removal, and free resources."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeAlias

import ray

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How far apart two looks are."""

ANSWER_SECONDS = 5
"""How long the cluster's head may take to answer one."""

_DRAINING = "DRAINING"

Status: TypeAlias = tuple[frozenset[str], dict[str, dict[str, float]]]
"""The nodes that are drained, and what is free on each node, by their hex ids."""


class Notices:
    """Looks once a second, in a thread of its own, so that a head that does not answer holds nobody up.

    `nodes` and `free_on` are what the last look that was answered found; `close` ends it.

    Args:
        look: finds the same, for tests.
    """

    def __init__(self, look: Callable[[], Status] | None = None) -> None:
        self.nodes: frozenset[str] = frozenset()
        """Hex ids of the nodes that are drained."""
        self.free_on: dict[str, dict[str, float]] = {}
        """What is free on each node; on those that are drained, nobody can have it."""
        self._look = look or look_at(ray.get_runtime_context().gcs_address)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drain-notices", daemon=True)
        self._thread.start()

    def free(self) -> dict[str, float]:
        """The free resources of the nodes that stay."""
        free: dict[str, float] = ray.available_resources()
        there = [self.free_on.get(node, {}) for node in self.nodes]
        return {name: max(0.0, amount - sum(one.get(name, 0.0) for one in there)) for name, amount in free.items()}

    def close(self) -> None:
        """Looks no more; a second call does nothing."""
        self._closing.set()
        self._thread.join(ANSWER_SECONDS + LOOK_SECONDS)

    def _run(self) -> None:
        failed = False
        while not self._closing.wait(LOOK_SECONDS):
            try:
                self.nodes, self.free_on = self._look()
                failed = False
            except Exception as error:  # What a head that is away raises is of many kinds.
                if not failed:
                    logger.warning("cannot look for drain notices: %s", error)
                failed = True


def look_at(address: str) -> Callable[[], Status]:
    """A look at the cluster of this head's address: drained nodes, and free resources of each.

    `ray.nodes()` does not tell (ray 2.60), `ray.util.state` takes the dashboard, and `ray.train.get_preemption_info`
    makes all workers of a gang wait for each other. What `ray status` shows does.
    """

    def look() -> Status:
        from ray.autoscaler.v2.sdk import get_cluster_status

        status = get_cluster_status(address, timeout=ANSWER_SECONDS)
        nodes = {str(node.node_id): node for node in (*status.active_nodes, *status.idle_nodes)}
        return (
            frozenset(name for name, node in nodes.items() if node.node_status == _DRAINING),
            {name: dict(node.available_resources()) for name, node in nodes.items()},
        )

    return look
