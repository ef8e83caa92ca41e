"""When results open to suggestions: behind them, the same in a job that grew, and such that no gang waits."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hpo.strategies.hyperband import Plan, lay_out, lay_out_cutting, run_all
from hpo.strategies.openings import Openings, at_once, by_clock, by_number

plans = st.builds(
    lambda lay, jobs, least, most: lay(jobs, least, max(least, most)),
    st.sampled_from([lay_out, lay_out_cutting]),
    st.integers(1, 50),
    st.integers(1, 3),
    st.integers(1, 81),
)
gangs = st.integers(1, 40)


@given(plans, gangs, st.floats(1, 3))
def test_a_result_opens_behind_its_trial_and_behind_the_rungs_before_it(plan: Plan, gangs: int, slack: float) -> None:
    for openings in (by_clock(plan, gangs, slack), by_number(plan, gangs)):
        assert all(opens > number for number, opens in enumerate(openings.firsts))
        behind = 0
        for bracket, rungs in zip(plan.brackets, openings.rungs, strict=True):
            last = openings.firsts[behind + bracket.sizes[0] - 1]
            behind += bracket.sizes[0]
            assert len(rungs) == len(bracket.rungs) - 1
            assert list(rungs) == sorted(rungs)
            assert all(opens >= last or opens >= behind for opens in rungs)


@given(plans, st.integers(1, 60), gangs)
def test_a_job_that_grew_reads_what_it_read(plan: Plan, more: int, gangs: int) -> None:
    grown = Plan(brackets=(*plan.brackets, *run_all(more, plan.max_resource).brackets), max_resource=plan.max_resource)
    for rule in (lambda of: by_clock(of, gangs, 1.5), lambda of: by_number(of, gangs)):
        before, after = rule(plan), rule(grown)
        for number in {0, plan.trials // 2, plan.trials - 1}:
            assert opened(before, number) == opened(after, number)


@given(plans)
def test_one_after_another_each_suggestion_reads_all_before_it(plan: Plan) -> None:
    assert list(by_clock(plan, 1, 1.0).firsts) == list(by_number(plan, 1).firsts)


@given(plans, gangs)
def test_so_many_trials_are_read_first(plan: Plan, gangs: int) -> None:
    openings = by_clock(plan, gangs, 1.5)
    for fewest in (1, plan.trials):
        number = openings.reads(fewest)
        assert sum(opens <= number for opens in openings.firsts) >= fewest
        assert sum(opens <= number - 1 for opens in openings.firsts) < fewest
    assert openings.reads(plan.trials + 1) == plan.trials
    assert at_once(plan).reads(plan.trials) == 0


def opened(openings: Openings, number: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The trials that a suggestion reads, and the rungs of brackets."""
    return (
        [trial for trial, opens in enumerate(openings.firsts) if opens <= number],
        [(index, rung) for index, of in enumerate(openings.rungs) for rung, opens in enumerate(of) if opens <= number],
    )
