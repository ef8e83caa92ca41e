"""Gangs of xgboost_ray: a placement group for each, with a coordinator in it.

What stays warm is the placement group, so that the gang's resources are its own, and the coordinator's process.
xgboost_ray starts its actors in there anew for every assignment.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError
from ray.train import ScalingConfig
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from trainers import steady
from trainers.channels import PlacedChannel
from trainers.cluster import Notices
from trainers.errors import GangError
from trainers.gangs import (
    END_SECONDS,
    PROGRESS_SECONDS,
    START_ATTEMPTS,
    Assignment,
    Event,
    GangEnded,
    GangLost,
    GangUp,
    Progress,
    Room,
    labels_of,
    resources_per_worker,
)
from trainers.process import whole
from trainers.xgboost.ray_backend.coordinator import Coordinator

logger = logging.getLogger(__name__)

PLACING_SECONDS = 5.0
"""How long a gang that fits may take to be placed; others may have been quicker."""

THREADS = 4
"""Of a coordinator: one serves, one is asked for news, and actors register."""


@dataclass(slots=True)
class _Gang:
    """One gang as its driver sees it; `waiting` holds what its coordinator was asked and has not answered."""

    name: str
    group: PlacementGroup
    coordinator: Any
    held_since: float
    up: bool = False
    nodes: frozenset[str] = frozenset()
    trial_id: str = ""
    save_to: str = ""
    waiting: dict[Any, str] = field(default_factory=dict)


class XGBoostRayGangs:
    """Starts and ends gangs of one size, hands assignments out and events in; see `trainers.gangs.base.Gangs`.

    A gang whose coordinator dies is over: the next call of `want` starts another.

    Args:
        name: prefix of the gangs' names.
        channels: what their actors read.
        scaling: actors of a gang, and what each needs.
        ray_params: fields of xgboost_ray's `RayParams`.
        notify: is told, once, what the user should know, such as that fewer gangs fit than were asked for.
        notices: of nodes that are drained; None where there are none to come.
        patient: wait for room as long as it takes.
    """

    def __init__(
        self,
        name: str,
        channels: Mapping[str, PlacedChannel],
        scaling: ScalingConfig,
        ray_params: Mapping[str, Any],
        *,
        notify: Callable[[str], None] = logger.info,
        notices: Notices | None = None,
        patient: bool = False,
    ) -> None:
        self._name = name
        self._channels = channels
        self._scaling = scaling
        self._ray_params = ray_params
        self._notify = notify
        self._notices = notices
        self._room = Room(scaling, notify, notices, patient=patient)
        self._gangs: dict[str, _Gang] = {}
        self._held_since: dict[str, float] = {}
        self._halts: list[str] = []
        self._start_seconds = 0.0
        self._failed_starts = 0

    @property
    def workers(self) -> int:
        """Actors that train in each gang."""
        return int(self._scaling.num_workers)  # type: ignore[arg-type]  # a range is refused by Trainer

    @property
    def starting(self) -> int:
        """Gangs that are on their way."""
        return sum(not gang.up for gang in self._gangs.values())

    def held_since(self, gang: str) -> float:
        """When the gang's placement group was made, in seconds since the epoch."""
        return self._held_since[gang]

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        """Starts a gang if fewer than are wanted are there and it is worth its start; see `RayGangs.want`.

        Raises:
            ResourcesError: not even one gang fits the cluster.
        """
        held, up = len(self._gangs), len(self._gangs) - self.starting
        count = sizes.get(self.workers, 0)
        worth_it = not up or (seconds_left is not None and seconds_left / up >= self._start_seconds)
        if held == up < count and worth_it and self._room.for_another(count, held):
            self._start()
        return ()

    def give_back(self) -> Collection[str]:
        """None: the package's gangs take no part in fair shares."""
        return ()

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Hands an assignment to a gang that is up and free."""
        held = self._gangs[gang]
        held.trial_id, held.save_to = assignment.trial_id, assignment.save_to
        held.waiting[held.coordinator.serve.remote(assignment)] = "serve"
        held.waiting[held.coordinator.news.remote(PROGRESS_SECONDS)] = "news"

    def halt(self, gang: str) -> None:
        """See `Gangs.halt`; it goes out with the next call of `events`."""
        self._halts.append(gang)

    def events(self, timeout: float) -> Sequence[Event]:
        """The events since the last call; waits up to `timeout` seconds for one.

        Raises:
            GangError: gangs cannot start, or cannot read their data.
        """
        halts, self._halts = self._halts, []
        for held in (self._gangs[gang] for gang in halts if gang in self._gangs):
            held.coordinator.halt.remote(held.save_to)
        asked = {answer: gang for gang in self._gangs.values() for answer in gang.waiting}
        if not asked:
            time.sleep(timeout)
            return [*self._leave_drained()]
        ray.wait(list(asked), timeout=timeout)
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=0)
        events: list[Event] = []
        for answer in ready:
            # What an earlier answer has ended waits for nothing any more.
            if question := asked[answer].waiting.pop(answer, ""):
                events += self._take(asked[answer], question, answer)
        return [*events, *self._leave_drained()]

    def _leave_drained(self) -> Iterator[GangEnded]:
        """Ends the gangs on nodes that are drained, each as soon as it serves nothing; see `RayGangs`."""
        drained = self._notices.nodes if self._notices else frozenset()
        for gang in [gang for gang in self._gangs.values() if gang.up and gang.nodes & drained]:
            if "serve" in gang.waiting.values():
                self.halt(gang.name)
            else:
                self._notify(f"a node of {gang.name} is being taken away: what it trained goes on elsewhere")
                yield self._bury(gang, "a node of its actors is drained")

    def recycle(self, gang: str, reason: str) -> None:
        """Kills a coordinator that does not answer; the gang says `GangEnded`."""
        logger.warning("gang %s is ended by force: %s", gang, reason)
        ray.kill(self._gangs[gang].coordinator)

    def close(self, *, now: bool = False) -> None:
        """Ends every gang and releases all they held, whatever they serve; a second call does nothing."""
        with whole():
            if self._notices:
                self._notices.close()
            gangs, self._gangs = list(self._gangs.values()), {}
            for gang in gangs:
                _release(gang)
            deadline = time.monotonic() + END_SECONDS
            while left := [gang.name for gang in gangs if placement_group_table(gang.group)["state"] != "REMOVED"]:
                if time.monotonic() > deadline:
                    self._notify(f"warning: waited {END_SECONDS:.0f} s for gangs to end, left are {', '.join(left)}")
                    return
                time.sleep(0.02)

    def _start(self) -> None:
        resources = resources_per_worker(self._scaling)
        selector = labels_of(self._scaling)
        group = placement_group(
            [dict(resources)] * self.workers,
            strategy=self._scaling.placement_strategy,
            bundle_label_selector=[dict(selector)] * self.workers if selector else None,
        )
        if not group.wait(PLACING_SECONDS):
            remove_placement_group(group)
            self._count_failed_start(f"waited {PLACING_SECONDS:.0f} s for its placement group, though there was room")
            return
        name = f"{self._name}-gang{len(self._held_since)}-{uuid.uuid4().hex[:4]}"
        place = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
        options = {"num_cpus": 0, "max_concurrency": THREADS, "scheduling_strategy": place}
        coordinator = (
            ray.remote(Coordinator).options(**options).remote(name, self._channels, resources, self._ray_params)
        )
        self._held_since[name] = steady.now()
        nodes = frozenset(placement_group_table(group)["bundles_to_node_id"].values())
        gang = self._gangs[name] = _Gang(name, group, coordinator, self._held_since[name], nodes=nodes)
        gang.waiting[gang.coordinator.open.remote()] = "open"

    def _take(self, gang: _Gang, question: str, answer: Any) -> list[Event]:
        """The events of an answer of a gang's coordinator."""
        try:
            given = ray.get(answer)
        except RayActorError as error:
            return [self._bury(gang, f"its coordinator died: {error}")]
        except RayTaskError as error:
            self._bury(gang, str(error))
            raise GangError(f"gang {gang.name} cannot serve: {error.cause}\n{error}") from error
        if question == "open":
            gang.up, self._failed_starts = True, 0
            self._start_seconds = steady.now() - gang.held_since
            return [_up(gang, *given)]
        if question == "news":
            if "serve" in gang.waiting.values():
                gang.waiting[gang.coordinator.news.remote(PROGRESS_SECONDS)] = "news"
            return [Progress(gang=gang.name, trial_id=gang.trial_id, reports=given)] if given else []
        gang.waiting.clear()
        if isinstance(given, GangEnded):
            self._bury(gang, given.error)
            raise GangError(f"gang {gang.name} cannot serve: {given.error}\n{given.traceback}".rstrip())
        return [given, _up(gang)] if isinstance(given, GangLost) else [given]

    def _bury(self, gang: _Gang, reason: str) -> GangEnded:
        del self._gangs[gang.name]
        gang.waiting.clear()
        _release(gang)
        if not gang.up:
            self._count_failed_start(reason)
        return GangEnded(gang=gang.name, error=reason)

    def _count_failed_start(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= START_ATTEMPTS:
            raise GangError(f"gangs failed to start {self._failed_starts} times in a row, the last: {reason}")


def _up(gang: _Gang, pid: int | None = None, opening: dict[str, float] | None = None) -> GangUp:
    return GangUp(
        gang=gang.name,
        workers=gang.group.bundle_count,
        incarnation=uuid.uuid4().hex,
        pids=() if pid is None else (pid,),
        hosts=_hosts(gang.group),
        opening=opening or {},
    )


def _hosts(group: PlacementGroup) -> tuple[str, ...]:
    """The machine of each actor."""
    names = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    return tuple(names.get(node, node) for node in placement_group_table(group)["bundles_to_node_id"].values())


def _release(gang: _Gang) -> None:
    """Ends everything that runs in the gang's placement group."""
    ray.kill(gang.coordinator)
    remove_placement_group(gang.group)
