"""What is changed back for each cause, why not where it is not, and that what is proposed to be tuned can be."""

from __future__ import annotations

from hypothesis import given, strategies as st

import hpo
from experiments.convergence.causes import Cause, Run, changes, ranges
from tests.support.experiments.convergence.causes import RUNS


@given(RUNS)
def test_a_change_is_one_thing_and_what_is_not_changed_has_a_reason(of: Run) -> None:
    made, ruled_out = changes(of)
    assert {change.causes[0] for change in made} | set(ruled_out) == set(Cause)
    for change in made:
        assert len(change.causes) == 1
        assert len(change.hyperparameters) + change.shuffled + change.whole + (change.noise > 1) == 1
        assert all(of.hyperparameters.get(name) != value for name, value in change.hyperparameters.items())


@given(RUNS, st.sets(st.sampled_from(Cause), min_size=1))
def test_proposed_ranges_hold_what_gave_something_back(of: Run, found: set[Cause]) -> None:
    proposed = ranges(of, found)
    for change in changes(of)[0]:
        if change.causes[0] in found:
            for name, value in change.hyperparameters.items():
                if name == "learning_rate_rule":  # Its effect is a rate that many times as large.
                    name, value = "lr", float(of.hyperparameters["lr"]) * of.workers
                if name == "link_bytes_per_second":
                    continue  # No hyperparameter that is tuned gives a link more.
                if isinstance(proposed[name], hpo.CategoricalParameter):
                    assert proposed[name].is_valid(value)
                else:
                    assert proposed[name].min_value <= value * 1.001
                    assert value <= proposed[name].max_value * 1.001
