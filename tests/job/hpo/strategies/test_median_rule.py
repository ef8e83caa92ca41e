"""The median rule: who is stopped, whatever the order of reports; and no trial waits in vain."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings, strategies as st

from hpo import TuningJobCompletionCriteriaConfig
from tests.support.hpo.strategies.median_rule import PLAN, RUNGS, curve_of, searched
from tests.support.properties import examples
from tests.support.simulated import drawn, outcome, simulate


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.sets(st.integers(0, 30), max_size=2))
@example(1, {2})
def test_one_seed_gives_one_answer_for_any_number_of_gangs_and_whichever_are_lost(seed: int, lost: set[int]) -> None:
    """With trials that fail, trials that diverge, and trials that take a hundred times as long as others."""
    expected, gangs, controller = searched(seed, 1)
    assert controller.trained <= PLAN.resource
    assert len(gangs.served) <= PLAN.assignments
    for parallel in (2, 4, 12):
        assert repr(searched(seed, parallel)[0]) == repr(expected)
    assert repr(searched(seed, 3, frozenset(lost))[0]) == repr(expected)


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6))
def test_trials_that_end_at_a_rung_by_themselves_are_compared_with_there_for_any_number_of_gangs(seed: int) -> None:
    lengths = (RUNGS[0], 5, RUNGS[1], RUNGS[2])

    def found(parallel: int) -> tuple[Any, ...]:
        controller, _, _ = simulate(
            plan=PLAN,
            parallel=parallel,
            curve=lambda assignment, step: curve_of(seed)(int(assignment.trial_id[-3:]), step),
            length=lambda config: lengths[int(drawn(f"{seed}/{config['eta']}") * len(lengths))] if config else None,
        )
        cuts = {cut.resource: (cut.went_on, cut.stopped) for cut in controller.trials.rungs.cuts}
        return outcome(controller), cuts

    assert found(2) == found(4) == found(8) == found(1)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 6), st.none() | st.floats(0.5, 1))
def test_completion_criteria_end_it_at_the_same_trial(seed: int, patience: int, target: float | None) -> None:
    criteria = TuningJobCompletionCriteriaConfig(patience, None, target)
    verdicts = []
    for parallel in (1, 2, 4):
        found, _, controller = searched(seed, parallel, completion=criteria)
        last = controller.trials.verdict.last if controller.trials.verdict else None
        verdicts.append(repr((controller.completed, last, found[0][1], found[1])))
    assert len(set(verdicts)) == 1
