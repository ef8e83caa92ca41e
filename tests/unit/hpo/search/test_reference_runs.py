"""Runs beside the trials, untuned ones and probes: they are made with the search and change nothing of it."""

from __future__ import annotations

import pytest

from hpo.search.trial import PROBE, UNTUNED
from tests.support.refusals import mentions
from tests.support.simulated import PLAN, outcome, rising, simulate
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment


def test_the_untuned_run_is_made_beside_the_trials() -> None:
    controller, _, _ = simulate(static={"eta": 0.3})
    assert controller.untuned is not None
    assert controller.untuned.resource == 30
    assert UNTUNED not in controller.runs
    assert controller.trained == PLAN.resource


def test_an_untuned_run_that_diverges_stops_nothing() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == UNTUNED:
            raise DivergedError("the loss is nan")
        return rising(assignment, step)

    controller, gangs, _ = simulate(curve=curve)
    assert controller.untuned is not None
    assert (controller.untuned.diverged, controller.untuned.failure) == ("the loss is nan", "")
    assert sum(a.trial_id == UNTUNED for a in gangs.served) == 1
    assert outcome(controller) == outcome(simulate()[0])


def test_a_probe_comes_first_and_changes_nothing() -> None:
    controller, gangs, record = simulate(probes=(1, 5))
    assert [(a.trial_id, a.start, a.stop) for a in gangs.served[:2]] == [(PROBE, 0, 1), (PROBE, 0, 5)]
    assert outcome(controller) == outcome(simulate()[0])
    assert controller.trained == simulate()[0].trained
    assert PROBE not in record.steps
    assert record.probed == [5]


def test_a_first_probe_that_takes_long_may_be_cold_and_one_more_unit_is_measured() -> None:
    taken = iter([8.0])
    _, gangs, record = simulate(probes=(1, 5), unit_seconds=lambda assignment: next(taken, 0.5))
    assert [assignment.stop for assignment in gangs.served if assignment.trial_id == "probe"] == [1, 1]
    assert record.probed == [1]
    [found] = record.found
    assert (found.segment.training_seconds, found.cold) == (0.5, False)


def test_a_first_probe_so_long_that_what_is_done_once_is_little_of_it_is_the_measurement() -> None:
    controller, gangs, record = simulate(probes=(1, 5), unit_seconds=lambda assignment: 10.5)
    assert record.found[0].cold
    assert [a.trial_id for a in gangs.served].count(PROBE) == 1
    assert record.probed == [1]
    assert outcome(controller) == outcome(simulate()[0])


def test_a_probe_that_fails_is_said_at_once_and_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == PROBE:
            raise ValueError("no line matched")
        return rising(assignment, step)

    _, gangs, _ = simulate(probes=(1, 5), curve=curve)
    assert [assignment.trial_id for assignment in gangs.served].count(PROBE) == 1
    [warned] = [record.getMessage() for record in caplog.records if "probe" in record.getMessage()]
    mentions(warned, "static hyperparameters", "no line matched")


@pytest.mark.parametrize("how", ["fails", "loses its gang"])
def test_a_probe_that_gives_nothing_stops_nothing(how: str) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == PROBE and how == "fails":
            raise ValueError("static values that cannot be trained")
        return rising(assignment, step)

    losses = frozenset({0}) if how == "loses its gang" else frozenset()
    controller, _, record = simulate(probes=(1, 5), curve=curve, losses=losses)
    assert outcome(controller) == outcome(simulate()[0])
    assert not record.probed
