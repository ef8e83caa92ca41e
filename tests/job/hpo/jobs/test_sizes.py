"""Trials that need gangs of several sizes: all are served, within the room there is, and decided as with one size."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from hpo.strategies.hyperband import lay_out
from tests.support.hpo.jobs.sizes import sized, watched
from tests.support.properties import examples
from tests.support.simulated import outcome, simulate


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(0, 8),
    st.integers(1, 40),
    st.integers(1, 6),
    st.frozensets(st.integers(0, 60), max_size=2),
    st.booleans(),
)
@example([2, 1], 2, 23, 2, frozenset({33}), False)
def test_any_mix_of_sizes_is_served_within_the_room_and_decided_as_one_size_is(
    sizes: list[int], more: int, jobs: int, parallel: int, losses: frozenset[int], probe: bool
) -> None:
    plan = lay_out(jobs, 1, 27)
    options: dict[str, Any] = {"plan": plan, "parallel": parallel, "losses": losses, "probes": (1, 5) if probe else ()}
    controller, gangs, _ = watched(sized(*sizes), room=max(sizes) + more, **options)
    assert all(run.trial.is_finished() and not run.failure for run in controller.runs.values())
    assert controller.untuned.resource == 27
    assert gangs.most_at_once <= parallel
    assert controller.ledger.total == pytest.approx(gangs.billed)
    assert outcome(controller) == outcome(simulate(**{**options, "losses": frozenset()})[0])
