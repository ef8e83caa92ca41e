"""The strategy Hyperband: how far its suggestions lag, and how its plan grows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from hpo.ranges import CategoricalParameter, ContinuousParameter
from hpo.strategies.hyperband import HyperbandStrategy, Plan, lay_out, lay_out_cutting
from hpo.strategies.hyperband.hyperband_strategy import _lag

RANGES = {"eta": ContinuousParameter(0.001, 1, "Logarithmic"), "booster": CategoricalParameter(["gbtree", "dart"])}


@pytest.mark.parametrize(("jobs", "lag"), [(10, 1), (30, 4), (100, 8)])
def test_suggestions_of_a_small_job_lag_less(jobs: int, lag: int) -> None:
    plan = HyperbandStrategy().plan(RANGES, jobs, 51)
    assert _lag(plan) == lag
    assert _lag(HyperbandStrategy().grown(plan, 2 * jobs)) == lag


configs = st.tuples(st.integers(1, 3), st.integers(3, 81), st.sampled_from([2, 3, 4]))


@pytest.mark.parametrize("source", [("random", lay_out), ("model", lay_out_cutting)])
@given(configs, st.lists(st.integers(1, 60), min_size=2, max_size=5))
def test_a_plan_grows_behind_what_there_is(source: Any, config: tuple[int, int, int], steps: list[int]) -> None:
    least, most, eta = config
    suggestions, brackets = source
    options = {"max_resource": most, "min_resource": least, "reduction_factor": eta}
    hyperband = HyperbandStrategy(suggestions=suggestions, **options)
    plan = brackets(steps[0], least, most, eta)
    for more in steps[1:]:
        longer = hyperband.grown(plan, plan.trials + more)
        assert longer.brackets[: len(plan.brackets)] == plan.brackets
        assert longer.brackets[len(plan.brackets) :] == brackets(more, least, most, eta).brackets
        assert longer.trials == plan.trials + more
        plan = longer
    assert Plan.from_json(plan.to_json()) == plan
