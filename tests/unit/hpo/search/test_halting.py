"""Trials that are halted in the middle of a rung, on simulated gangs: the same decisions in the end."""

from __future__ import annotations

import pytest

from hpo.search.simulated_gangs import SimulatedGangs
from tests.support.hpo.search.halting import Halting
from tests.support.simulated import PLAN, outcome, simulate


@pytest.mark.parametrize("losses", [frozenset(), frozenset({3, 17})])
def test_halted_trials_end_where_they_would_have(losses: frozenset[int]) -> None:
    straight, never, _ = simulate()
    halted, often, record = simulate(gangs=Halting, losses=losses)
    assert outcome(halted) == outcome(straight)
    assert len(often.served) > len(never.served) + 10
    for run in halted.runs.values():
        assert sorted(set(record.steps[run.id])) == list(range(1, run.resource + 1))
    if not losses:
        assert halted.trained == straight.trained == PLAN.resource
        assert all(len(steps) == len(set(steps)) for steps in record.steps.values())
        assert often.busy_seconds == pytest.approx(never.busy_seconds)


def test_trials_that_cannot_go_on_exactly_go_on_from_their_rung() -> None:
    straight, never, _ = simulate()
    halted, often, _ = simulate(gangs=Halting, exact_from=lambda hyperparameters: False)
    assert outcome(halted) == outcome(straight)
    assert {order.start for order in often.served} == {order.start for order in never.served}
    assert halted.trained == straight.trained
    assert often.busy_seconds > never.busy_seconds


def test_a_checkpoint_of_fewer_units_has_a_name_of_its_own() -> None:
    _, often, _ = simulate(gangs=Halting, suffix=".pt")
    for order in often.served:
        if order.start:
            assert order.checkpoint is not None
            assert order.checkpoint.endswith(f"/{order.start:06d}.pt")


def test_nothing_is_halted_that_is_not_served() -> None:
    gangs = SimulatedGangs(lambda assignment, step: 0.0, metric="x")
    gangs.halt("nobody")
    gangs.want({3: 1}, None)
    [up] = gangs.events(0.0)
    gangs.halt(up.gang)
    assert not gangs._events
