"""Capacity of a cluster for another gang."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import ray
from ray.train import ScalingConfig
from ray.util import placement_group_table

from trainers.cluster import SLACK, Notices, free_places, gangs_that_fit, given_back, has_labels, places
from trainers.errors import ResourcesError
from trainers.gangs.scaling import labels_of, resources_per_worker

WAIT_SECONDS = 120.0
"""How long a job without a gang waits for others to give back what it needs."""

LOOK_AGAIN_SECONDS = 0.5

MOST_BETWEEN = 10.0
"""The most seconds between two looks that count as waited: a process that stood still has not seen who left room."""


class Room:
    """Looks for room for gangs of one size, and says what is short.

    Args:
        scaling: workers of a gang, and what each needs.
        notify: is told, once, that fewer gangs fit than could work.
        notices: of nodes that are drained, which have no room; None where there are none to come.
        patient: whether to wait for room as long as it takes, also for nodes that are not there yet.
    """

    def __init__(
        self,
        scaling: ScalingConfig,
        notify: Callable[[str], None],
        notices: Notices | None = None,
        *,
        patient: bool = False,
    ) -> None:
        self._scaling = scaling
        self._workers = int(scaling.num_workers)  # type: ignore[arg-type]  # a range is refused by Trainer
        self._need = resources_per_worker(scaling)
        self._notify = notify
        self._notices = notices
        self._told = False
        self._patience = math.inf if patient else WAIT_SECONDS
        self._fitted = patient
        """Whether it had room once: nodes that have gone since may be replaced."""
        self._waited: float | None = None
        """Seconds for which there has been no room; None where there is a gang, or was some at the last look."""
        self._looked = self._look_again = 0.0

    def for_another(self, wanted: int, gangs: int, returned: Collection[str] = ()) -> bool:
        """Whether one more gang fits now.

        Args:
            wanted: how many gangs of this size could work at once.
            gangs: gangs of this size, and others that will make room once they have nothing to serve.
            returned: placement groups that would be given back before.

        Raises:
            ResourcesError: the cluster has never held one, even when it is empty; or there was no room for
                `WAIT_SECONDS`.
        """
        need = self._need
        if returned:
            return self._fits(self._free(), returned)
        now = time.monotonic()
        if now < self._look_again:
            return False
        holds = capacity(self._scaling, self._drained)
        if not holds and not self._fitted:
            check_capacity(self._scaling)
        if holds < wanted and not self._told:
            self._told = True
            self._notify(
                f"{wanted} gangs of {self._workers} workers could work at once, and the cluster holds {holds} "
                f"({amounts(ray.cluster_resources(), need)} on {_count_nodes()}); "
                f"running with those that fit, and more as they come up"
            )
        free = self._free()
        if self._fits(free):
            self._fitted = True
            self._waited = None
            return True
        self._look_again = now + LOOK_AGAIN_SECONDS
        between, self._looked = min(now - self._looked, MOST_BETWEEN), now
        self._waited = None if gangs else 0.0 if self._waited is None else self._waited + between
        if self._waited is not None and self._waited > self._patience:
            raise ResourcesError(
                f"waited {self._patience:.0f} s for room for a gang of {self._workers} workers of "
                f"{amounts(need)} each; free now: {amounts(free, need)}. Others hold the rest: see `ray status`"
            )
        return False

    @property
    def fits(self) -> bool:
        """Whether one fits now, whatever the job waits for."""
        return self._fits(self._free())

    def wait_on(self) -> None:
        """Begins the wait for room anew: it is on its way."""
        self._waited = None

    def look_now(self) -> None:
        """Something was given back: the next question is worth a look."""
        self._look_again = 0.0

    @property
    def _drained(self) -> frozenset[str]:
        return self._notices.nodes if self._notices else frozenset()

    def _free(self) -> dict[str, float]:
        return self._notices.free() if self._notices else dict(ray.available_resources())

    def _fits(self, free: dict[str, float], returned: Collection[str] = ()) -> bool:
        nodes, groups = _nodes(self._scaling, self._drained), placement_group_table()
        back = given_back(nodes, groups, returned)
        # What runs outside of placement groups is seen in what the whole cluster has free alone.
        if any(
            free.get(name, 0.0) + back.get(name, 0.0) + SLACK < amount * self._workers
            for name, amount in self._need.items()
        ):
            return False
        # Two nodes with a free CPU each do not hold a worker that needs two.
        left = {group: row for group, row in groups.items() if group not in returned}
        there = free_places(nodes, left, self._need)
        return gangs_that_fit(list(there.values()), self._workers, str(self._scaling.placement_strategy)) > 0


def check_capacity(scaling: ScalingConfig) -> None:
    """Refuses a gang that the cluster does not hold.

    Raises:
        ResourcesError: it would not fit if nothing else ran there.
    """
    if capacity(scaling) > 0:
        return
    need, placement, total = resources_per_worker(scaling), str(scaling.placement_strategy), ray.cluster_resources()
    remedy = "a smaller ScalingConfig(num_workers=...), or range of num_workers, or add nodes"
    if labels_of(scaling) and capacity(_anywhere(scaling)) > 0:
        remedy = f"another ScalingConfig(label_selector=...): too few nodes have {labels_of(scaling)!r}"
    elif need.get("GPU") and not total.get("GPU"):
        remedy = "ScalingConfig(use_gpu=False), or add nodes with GPUs"
    elif placement.startswith("STRICT") and capacity(replace(scaling, placement_strategy="PACK")) > 0:
        kind = "one node" if placement == "STRICT_PACK" else "a node each"
        remedy = (
            f"ScalingConfig(placement_strategy={placement.removeprefix('STRICT_')!r}), which does not ask for {kind}"
        )
    raise ResourcesError(
        f"a gang needs {scaling.num_workers} workers of {amounts(need)} each, and the cluster holds "
        f"{amounts(total, need)} on {_count_nodes()}; give {remedy}"
    )


def check_beside(scaling: ScalingConfig, workers: int, each: Mapping[str, float], servers: int) -> None:
    """Refuses a gang whose parameter servers the cluster does not hold beside its workers.

    Args:
        scaling: of the workers.
        workers: how many.
        each: what a server asks for.
        servers: how many.

    Raises:
        ResourcesError: all nodes together have too little, if nothing else ran there.
    """
    need, total = resources_per_worker(scaling), ray.cluster_resources()
    if any(total.get(name, 0.0) + SLACK < need.get(name, 0.0) * workers + each[name] * servers for name in each):
        raise ResourcesError(
            f"a gang needs {workers} workers of {amounts(need)} each and {servers} parameter servers of "
            f"{amounts(each)} each, and the cluster holds {amounts(total, {**need, **each})} on {_count_nodes()}; "
            "give smaller server_resources, fewer servers or workers, or add nodes"
        )


def capacity(scaling: ScalingConfig, drained: frozenset[str] = frozenset()) -> int:
    """How many gangs the cluster's nodes hold when it is otherwise empty, but for those that are drained."""
    room = places(_nodes(scaling, drained), resources_per_worker(scaling))
    workers = int(scaling.num_workers)  # type: ignore[arg-type]  # a range is refused by Trainer
    return gangs_that_fit(list(room.values()), workers, str(scaling.placement_strategy))


def largest_gang(scaling: ScalingConfig, at_once: int) -> int:
    """The most workers of a gang, in doubling steps, of which the cluster holds `at_once`; no more than it has CPUs."""
    workers, cpus = 1, ray.cluster_resources().get("CPU", 1.0)
    while 2 * workers <= cpus and capacity(replace(scaling, num_workers=2 * workers)) >= at_once:
        workers *= 2
    return workers


def _nodes(scaling: ScalingConfig, drained: frozenset[str]) -> list[dict[str, Any]]:
    """The nodes that workers may be on."""
    allowed = labels_of(scaling)
    return [node for node in ray.nodes() if node["NodeID"] not in drained and has_labels(node, allowed)]


def _anywhere(scaling: ScalingConfig) -> ScalingConfig:
    changes: dict[str, Any] = {"label_selector": None}
    return replace(scaling, **changes)


def amounts(resources: Mapping[str, float], names: Iterable[str] | None = None) -> str:
    """Resources in words, such as "2 CPU, 1 GPU"; those that are named, where some are."""
    return ", ".join(f"{resources.get(name, 0.0):g} {name}" for name in names or resources)


def _count_nodes() -> str:
    count = sum(node["Alive"] for node in ray.nodes())
    return f"{count} node" + ("s" if count != 1 else "")
