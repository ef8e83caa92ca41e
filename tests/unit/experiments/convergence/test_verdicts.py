"""What is said of each published theory: confirmed, ruled out or not testable, from scores that are written by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from experiments.convergence.causes import BOOSTING, Cause, Run, changes
from experiments.convergence.diagnosis import Diagnosis, diagnose
from experiments.convergence.effects import Gap
from experiments.convergence.published_theories import Theory
from experiments.convergence.verdicts import Judgement, Verdict, judgements
from experiments.shared.scores import Scores
from tests.support.refusals import mentions

GIVEN = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 100, "link_bytes_per_second": 125_000_000}
ASYNC = Run(workers=4, mode="async", hyperparameters=GIVEN)
TREES = Run(workers=3, mode=BOOSTING, hyperparameters={"eta": 0.3})
TESTED = {cause.theory: cause for cause in Cause if cause.theory}


def scores(mean: float, error: float = 0.002) -> Scores:
    apart = error * 3**0.5
    return Scores(values=(mean - apart, mean, mean + apart), row_error=0.002)


def diagnosis(
    run: Run, back: dict[Cause, Scores], *, distributed: float = 0.1, exact: Scores | None = None
) -> Diagnosis:
    """Of a run whose twin comes to 0.9; a change that is not named gives nothing back."""
    made, ruled_out = changes(run)
    gap = Gap(alone=scores(0.9), distributed=scores(distributed))
    tried = [(change, back.get(change.causes[0], scores(distributed))) for change in made] if gap.is_one else []
    return diagnose(run, "validation:accuracy", gap, tried, [], ruled_out, exact)


def by_theory(found: Diagnosis) -> dict[Theory, Judgement]:
    return {judgement.theory: judgement for judgement in judgements(found)}


def test_each_theory_but_that_of_trees_is_tested_by_one_cause_and_has_a_source() -> None:
    assert TESTED == {
        Theory.CONGESTION: Cause.CONGESTION,
        Theory.SHARP: Cause.BATCH,
        Theory.STALENESS: Cause.STALENESS,
        Theory.NOISE: Cause.NOISE,
    }
    assert all(theory.source and theory.claim for theory in Theory)
    assert "1609.04836" in Theory.SHARP.source
    assert "1810.03264" in Theory.STALENESS.source


def test_what_gives_back_the_loss_is_confirmed_and_what_does_not_is_ruled_out() -> None:
    found = by_theory(diagnosis(ASYNC, {Cause.STALENESS: scores(0.9)}))
    assert {theory: judgement.verdict for theory, judgement in found.items()} == {
        Theory.CONGESTION: Verdict.RULED_OUT,
        Theory.SHARP: Verdict.RULED_OUT,
        Theory.STALENESS: Verdict.CONFIRMED,
        Theory.METHOD: Verdict.NOT_TESTABLE,
        Theory.NOISE: Verdict.RULED_OUT,
    }
    mentions(found[Theory.STALENESS].why, "mode", "sync", "async", "100.0% ± 0.4%")
    mentions(found[Theory.CONGESTION].why, "link", "125,000,000", "bytes")
    mentions(found[Theory.NOISE].why, "gradients", "25 rows", 100)
    mentions(found[Theory.METHOD].why, "trees")


def test_what_the_noise_of_seeds_hides_is_neither() -> None:
    unsure = by_theory(diagnosis(ASYNC, {Cause.BATCH: scores(0.2, 0.1)}))[Theory.SHARP]
    assert unsure.verdict is Verdict.NOT_TESTABLE
    mentions(unsure.why, "per_worker_batch_size", "--seeds")


def test_what_one_seed_says_of_a_metric_without_an_error_is_neither() -> None:
    """Of rmse, say, whose rows give no standard error."""

    def once(mean: float) -> Scores:
        return Scores(values=(mean,))

    made, ruled_out = changes(ASYNC)
    gap = Gap(alone=once(0.9), distributed=once(0.1))
    tried = [(change, once(0.9 if Cause.STALENESS in change.causes else 0.1)) for change in made]
    found = by_theory(diagnose(ASYNC, "validation:rmse", gap, tried, [], ruled_out))
    for theory in (Theory.STALENESS, Theory.SHARP):
        assert found[theory].verdict is Verdict.NOT_TESTABLE
        mentions(found[theory].why, "--seeds")
    _, untried = changes(TREES)
    same = Gap(alone=once(0.9), distributed=once(0.9))
    boosted = by_theory(diagnose(TREES, "validation:rmse", same, [], [], untried, once(0.95)))[Theory.METHOD]
    assert boosted.verdict is Verdict.NOT_TESTABLE


def test_what_a_run_has_nothing_of_is_not_testable_and_said() -> None:
    without = {name: value for name, value in GIVEN.items() if name != "link_bytes_per_second"}
    found = by_theory(diagnosis(Run(workers=4, mode="sync", hyperparameters=without), {}))
    assert found[Theory.STALENESS].verdict is Verdict.NOT_TESTABLE
    mentions(found[Theory.STALENESS].why, "workers", "gradient", "parameters")
    assert found[Theory.CONGESTION].verdict is Verdict.NOT_TESTABLE
    assert "link_bytes_per_second" in found[Theory.CONGESTION].why
    assert found[Theory.SHARP].verdict is Verdict.RULED_OUT
    same = Run(workers=4, mode="sync", hyperparameters={"lr": 0.1, "global_batch_size": 100})
    mentions(by_theory(diagnosis(same, {}))[Theory.NOISE].why, "rows", "worker", "gradient")


def test_where_nothing_was_lost_there_is_nothing_to_explain() -> None:
    found = by_theory(diagnosis(ASYNC, {}, distributed=0.9))
    assert found[Theory.STALENESS].verdict is Verdict.RULED_OUT
    mentions(found[Theory.STALENESS].why, "0.0000")


def test_exact_trees_are_held_against_those_that_distribute() -> None:
    lost = by_theory(diagnosis(TREES, {}, distributed=0.9, exact=scores(0.95)))[Theory.METHOD]
    assert lost.verdict is Verdict.CONFIRMED
    mentions(lost.why, "tree_method exact", "0.9500 ± 0.0020", "histograms", "0.9000 ± 0.0020", "0.0500 ± 0.0040")
    same = by_theory(diagnosis(TREES, {}, distributed=0.9, exact=scores(0.9)))[Theory.METHOD]
    assert same.verdict is Verdict.RULED_OUT
    none = by_theory(diagnosis(TREES, {}, distributed=0.9))
    assert none[Theory.METHOD].verdict is Verdict.NOT_TESTABLE
    for theory in (Theory.CONGESTION, Theory.SHARP, Theory.STALENESS, Theory.NOISE):
        assert none[theory].verdict is Verdict.NOT_TESTABLE


@given(
    st.sampled_from(["async", "bounded", "sync", BOOSTING]),
    st.dictionaries(st.sampled_from(Cause), st.floats(0, 1)),
    st.floats(0, 1),
)
def test_of_every_theory_something_is_known_and_kept(mode: str, back: dict[Cause, float], distributed: float) -> None:
    found = diagnosis(
        Run(workers=4, mode=mode, hyperparameters=GIVEN),
        {cause: scores(value) for cause, value in back.items()},
        distributed=distributed,
    )
    kept = json.loads(json.dumps([judgement.to_json() for judgement in judgements(found)]))
    assert [judgement["theory"] for judgement in kept] == [str(theory) for theory in Theory]
    assert all(judgement["why"] and judgement["source"] for judgement in kept)


@pytest.mark.parametrize("cause", Cause)
def test_a_change_names_the_theory_that_it_tests(cause: Cause) -> None:
    [change] = (change for change in changes(ASYNC)[0] if change.causes == (cause,))
    assert change.theories == (cause.theory or "")
