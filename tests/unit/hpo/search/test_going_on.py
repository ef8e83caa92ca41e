"""Gangs of trials that go on at once, as their scheduler pauses none: each stays where its program waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from ray.tune.schedulers import AsyncHyperBandScheduler

from hpo.search.roster import Roster
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.search.trial import UNTUNED, new_run, next_assignment
from hpo.strategies import RESOURCE
from hpo.strategies.hyperband import run_all
from hpo.strategies.median_rule import with_median_rule
from hpo.strategies.ray_tune import known
from hpo.strategies.ray_tune.guard import Guard
from hpo.strategies.ray_tune.scheduler import GuardedScheduler
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from tests.support.simulated import METRIC, PLAN, search_of, simulate
from trainers.gangs import Assignment

ALL = run_all(20, 27)
MEDIAN = with_median_rule(ALL)


class Watched(SimulatedGangs):
    """Gangs that remember who served what."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.on: dict[str, list[tuple[str, Assignment]]] = defaultdict(list)
        """By trial."""
        self.last: dict[str, Assignment] = {}
        self.starts = 0
        """Of programs that begin, or go on elsewhere than where they wait."""

    def assign(self, gang: str, assignment: Assignment) -> None:
        self.on[assignment.trial_id].append((gang, assignment))
        before = self.last.get(gang)
        waits = before is not None and before.goes_on and before.trial_id == assignment.trial_id
        self.starts += not (waits and before is not None and before.stop == assignment.start)
        self.last[gang] = assignment
        super().assign(gang, assignment)


def asha() -> GuardedScheduler:
    scheduler = AsyncHyperBandScheduler(time_attr=RESOURCE, metric=METRIC, mode="max", max_t=27)
    return GuardedScheduler(scheduler, milestones=known.milestones(scheduler, 27), guard=Guard(1))


def median() -> SynchronousHyperBandScheduler:
    return SynchronousHyperBandScheduler(MEDIAN, metric=METRIC, mode="max")


@pytest.mark.parametrize("parallel", [1, 4, 9])
@pytest.mark.parametrize("seconds", [None, lambda assignment: 1.0])
def test_a_trial_that_is_not_stopped_stays_on_its_gang(
    parallel: int, seconds: Callable[[Assignment], float] | None
) -> None:
    options = {} if seconds is None else {"unit_seconds": seconds}
    _, gangs, _ = simulate(asha(), plan=ALL, parallel=parallel, gangs=Watched, stops_only=True, **options)
    assert isinstance(gangs, Watched)
    assert gangs.starts == len(gangs.on)
    several = [served for served in gangs.on.values() if len(served) > 1]
    assert several
    assert all(len({gang for gang, _ in served}) == 1 for served in several)
    for served in gangs.on.values():
        *before, last = (assignment for _, assignment in served)
        assert all(each.goes_on for each in before)
        assert last.goes_on == (last.stop < 27)


def test_a_trial_that_lost_its_gang_does_not_take_that_of_one_that_goes_on() -> None:
    """Ray's schedulers choose the trial that began first, wherever it waits."""
    losses = frozenset({1, 5, 8, 13, 21})
    _, gangs, _ = simulate(asha(), plan=ALL, parallel=4, losses=losses, gangs=Watched, stops_only=True)
    assert isinstance(gangs, Watched)
    assert gangs.starts <= len(gangs.on) + len(losses)


def test_under_the_median_rule_those_that_wait_for_nobody_stay_on_their_gang() -> None:
    _, gangs, _ = simulate(median(), plan=MEDIAN, parallel=1, gangs=Watched, stops_only=True)
    assert isinstance(gangs, Watched)
    assert gangs.starts == len(gangs.on)
    controller, gangs, _ = simulate(median(), plan=MEDIAN, parallel=4, gangs=Watched, stops_only=True)
    assert isinstance(gangs, Watched)
    assert len(gangs.on) <= gangs.starts < len(gangs.served)
    assert all(run.trial.is_finished() for run in controller.runs.values())


def test_no_other_run_is_to_go_on() -> None:
    search = search_of(PLAN, parallel=1, stops_only=True)
    trial, untuned = new_run(search, 0, "job-000", {}), new_run(search, -1, UNTUNED, {})
    assert next_assignment(search, trial, 1).goes_on
    assert not next_assignment(search, trial, trial.limit).goes_on
    assert not next_assignment(search, untuned, 1).goes_on
    assert not next_assignment(search_of(PLAN, parallel=1), trial, 1).goes_on


def test_a_gang_where_another_is_to_go_on_is_taken_last_and_only_where_nothing_else_helps() -> None:
    search = search_of(PLAN, parallel=3, stops_only=True)
    roster = Roster(lambda: 0.0)
    going, waiting, new = (new_run(search, number, f"job-{number:03d}", {}) for number in range(3))
    for gang, run in (("a", going), ("b", waiting)):
        roster.up(gang, run.workers)
        roster.begin(gang, run, next_assignment(search, run, 1))
        roster.done(gang)
    waiting.trial.set_status("PAUSED")
    assert roster.free_one(waiting) == "b"
    assert roster.free_one(going) == "a"
    assert roster.free_one(new) == "b"
    roster.begin("b", new, next_assignment(search, new, 1))
    assert roster.free_one(waiting) is None
    assert roster.free_one(waiting, at_any_cost=True) == "a"
    going.trial.set_status("TERMINATED")
    assert roster.free_one(waiting) == "a"
