"""The decisions of Hyperband: laws, on hundreds of layouts, and the plain rule beside them."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings, strategies as st

from hpo.strategies.hyperband import Hyperband, State, lay_out, run_all
from tests.support.hpo.strategies.hyperband.halving import layouts, play
from tests.support.properties import examples


@settings(max_examples=examples(300), deadline=None)
@given(layouts, st.integers(0, 2**32), st.integers(1, 9), st.data())
def test_every_run_ends_within_the_forecast(layout, seed: int, parallel: int, data: st.DataObject) -> None:
    plan = lay_out(min(layout[0], 40), *layout[1:])
    curve_seed = data.draw(st.integers(0, 2**32))
    failing = data.draw(st.dictionaries(st.integers(0, 39), st.integers(1, 100), max_size=12))

    def curve(trial: str, step: int) -> float:
        generator = random.Random(f"{curve_seed}{trial}{step}")
        return generator.choice([generator.random(), generator.random(), math.nan, math.inf, -math.inf])

    core, used = play(plan, curve, seed, parallel, lambda trial: failing.get(int(trial[1:])))
    assert len(used) == plan.trials
    assert {core.state(trial) for trial in used} <= {State.STOPPED, State.FINISHED, State.FAILED}
    assert sum(used.values()) <= plan.resource
    assert max(used.values()) <= plan.max_resource


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**32))
def test_nothing_that_is_not_finite_goes_on(jobs: int, seed: int) -> None:
    plan = lay_out(jobs, 1, 30)
    bad = {f"t{number:03d}" for number in range(jobs) if random.Random(f"{seed}{number}").random() < 0.5}
    core, used = play(plan, lambda trial, step: math.nan if trial in bad else 0.1, seed, 3)
    for trial in bad:
        assert used[trial] == plan.brackets[core.bracket(trial)].rungs[0]


def test_ties_go_to_the_trial_that_came_first() -> None:
    _, used = play(lay_out(30, 1, 30), lambda trial, step: 0.5, seed=3, parallel=4)
    assert [used[f"t{number:03d}"] for number in range(11)] == [30, 10, 3, 3] + [1] * 7


def test_minimising_keeps_the_smallest() -> None:
    plan = lay_out(9, 1, 9)
    core = Hyperband(plan, maximize=False)
    bracket = plan.brackets[0]
    trials = [f"t{number}" for number in range(bracket.sizes[0])]
    for trial in trials:
        core.add(trial)
    for number, trial in enumerate(trials):
        core.report(trial, bracket.rungs[0], float(number))
    assert [trial for trial in trials if core.state(trial) is State.TRAINING] == trials[: bracket.sizes[1]]


def test_a_trial_that_fails_while_it_waits_at_a_rung_is_no_candidate() -> None:
    plan = lay_out(9, 1, 9)
    core = Hyperband(plan, maximize=True)
    first, *others = [f"t{number}" for number in range(plan.brackets[0].sizes[0])]
    for trial in (first, *others):
        core.add(trial)
    core.report(first, plan.brackets[0].rungs[0], 1.0)
    assert core.state(first) is State.WAITING
    core.fail(first)
    for number, trial in enumerate(others):
        core.report(trial, plan.brackets[0].rungs[0], 0.5 - number / 100)
    assert core.state(first) is State.FAILED
    assert [trial for trial in others if core.state(trial) is State.TRAINING] == others[: plan.brackets[0].sizes[1]]


def test_a_search_that_runs_dry_still_ends() -> None:
    core = Hyperband(lay_out(30, 1, 30), maximize=True)
    for trial in ("a", "b"):
        core.add(trial)
        core.report(trial, 1, 0.5)
    assert core.state("a") is State.WAITING
    core.close()
    assert core.state("a") is State.TRAINING


def test_running_all_cuts_nothing() -> None:
    plan = run_all(7, 12)
    _, used = play(plan, lambda trial, step: random.random(), seed=1, parallel=3)
    assert set(used.values()) == {12}
    assert plan.resource == plan.full_resource
