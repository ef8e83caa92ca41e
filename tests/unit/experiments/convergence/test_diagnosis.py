"""Verdicts, their order and their words, from scores that are written by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, strategies as st

from experiments.convergence.causes import Cause, Change, Run, changes
from experiments.convergence.diagnosis import Diagnosis, diagnose, listed, pairs_of, percent
from experiments.convergence.effects import Gap, Share
from experiments.shared.scores import Scores
from tests.support.refusals import mentions, missing_names

GIVEN = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 100, "link_bytes_per_second": 1e6}
RUN = Run(workers=4, mode="async", hyperparameters=GIVEN)
CHANGES, _ = changes(RUN)
BY_CAUSE = {change.causes[0]: change for change in CHANGES}


def scores(mean: float, error: float = 0.002) -> Scores:
    """Three seeds' with this mean and error."""
    apart = error * 3**0.5
    return Scores(values=(mean - apart, mean, mean + apart), row_error=0.002)


def diagnosis(tried: dict[Cause, float], pair: float | None = None, distributed: float = 0.1) -> Diagnosis:
    gap = Gap(alone=scores(0.97), distributed=scores(distributed))
    both = [(BY_CAUSE[Cause.BATCH] & BY_CAUSE[Cause.RATE], scores(pair))] if pair is not None else []
    return diagnose(RUN, "validation:accuracy", gap, [(BY_CAUSE[c], scores(v)) for c, v in tried.items()], both, {})


def test_one_change_that_is_enough_is_the_cause() -> None:
    found = diagnosis({Cause.BATCH: 0.11, Cause.MOMENTUM: 0.965, Cause.RATE: 0.3})
    assert [finding.change.causes[0] for finding in found.findings] == [Cause.MOMENTUM, Cause.RATE, Cause.BATCH]
    mentions(found.verdict, "momentum 0", 0.9, "0.9650 ± 0.0020", "99.4% ± 0.3%")
    mentions(found.verdict, "4 workers", "0.1000 ± 0.0020", "0.9700 ± 0.0020", "validation:accuracy")
    assert found.found == [Cause.MOMENTUM, Cause.RATE, Cause.BATCH]


def test_several_that_are_enough_do_it_together() -> None:
    found = diagnosis({Cause.STALENESS: 0.96, Cause.MOMENTUM: 0.965, Cause.SHARDS: 0.1})
    mentions(found.verdict, "momentum", "staleness", "4 workers", "99.4% ± 0.3%", "98.9% ± 0.3%")
    assert found.interact
    mentions(found.adding_up, "198%", "100%")
    three = diagnosis({Cause.STALENESS: 0.96, Cause.MOMENTUM: 0.965, Cause.RATE: 0.95})
    mentions(three.verdict, "momentum", "staleness", Cause.RATE.word, "99.4% ± 0.3%", "98.9% ± 0.3%", "97.7% ± 0.3%")


def test_no_single_change_is_enough() -> None:
    found = diagnosis({Cause.BATCH: 0.4, Cause.RATE: 0.2}, pair=0.9)
    assert not found.enough
    mentions(found.verdict, "4 workers", "per_worker_batch_size 25", 100, "34.5% ± 0.3%")
    mentions(found.verdict, "92.0% ± 0.3%", "lr 0.025", 0.1)
    mentions(found.adding_up, "46%", "100%", "per_worker_batch_size 25", "lr 0.025", "92.0% ± 0.3%")


def test_nothing_that_was_tried_may_be_it() -> None:
    found = diagnosis({Cause.BATCH: 0.1, Cause.RATE: 0.101})
    mentions(found.verdict, "4 workers", "0.1000 ± 0.0020", "0.9700 ± 0.0020")
    assert "%" not in found.verdict
    assert found.found == []
    # Then everything is worth tuning.
    assert set(found.ranges) == {"lr", "momentum", "per_worker_batch_size", "mode"}


def test_causes_that_add_up_act_each_by_itself() -> None:
    found = diagnosis({Cause.BATCH: 0.1 + 0.87 * 0.6, Cause.RATE: 0.1 + 0.87 * 0.4})
    assert not found.interact
    mentions(found.adding_up, "100%")


def test_changes_that_give_back_nothing_add_no_noise_to_what_the_others_come_to() -> None:
    """Of four that are unsure by 10% each, two standard errors together are 40% of the gap."""
    unsure = dict.fromkeys([Cause.SHARDS, Cause.METRIC, Cause.CONGESTION, Cause.NOISE], scores(0.1, 0.09))
    gap = Gap(alone=scores(0.97), distributed=scores(0.1))
    tried = {Cause.STALENESS: scores(0.86), Cause.MOMENTUM: scores(0.4), **unsure}
    found = diagnose(RUN, "validation:accuracy", gap, [(BY_CAUSE[c], of) for c, of in tried.items()], [], {})
    assert found.interact
    mentions(found.adding_up, "122%")


def test_without_a_gap_it_says_so_and_proposes_nothing() -> None:
    gap = Gap(alone=scores(0.7551), distributed=scores(0.7549))
    found = diagnose(RUN, "validation:auc", gap, [], [], {})
    mentions(found.verdict, "4 workers", "0.7549 ± 0.0020", "0.7551 ± 0.0020", "0.0002 ± 0.0040", "noise")
    assert found.ranges == {}
    better = diagnose(RUN, "validation:auc", Gap(alone=scores(0.7), distributed=scores(0.8)), [], [], {})
    mentions(better.verdict, "4 workers", "0.8000 ± 0.0020", "0.7000 ± 0.0020")
    assert missing_names(better.verdict, "noise")


def test_what_the_best_change_leaves_is_tried_on_top_of_it() -> None:
    found = diagnosis({Cause.STALENESS: 0.96, Cause.MOMENTUM: 0.95, Cause.SHARDS: 0.1, Cause.METRIC: 0.1})
    pairs = pairs_of(found)
    assert [pair.causes for pair in pairs] == [(Cause.STALENESS, Cause.BATCH), (Cause.STALENESS, Cause.RATE)]
    # Workers that wait for each other want a larger rate, not a smaller one.
    assert pairs[1].hyperparameters == {"mode": "sync", "learning_rate_rule": "linear"}
    skewed = diagnosis({Cause.MOMENTUM: 0.8, Cause.SHARDS: 0.3, Cause.METRIC: 0.1})
    assert (Cause.MOMENTUM, Cause.SHARDS) in [pair.causes for pair in pairs_of(skewed)]
    assert pairs_of(diagnosis({})) == []


@given(st.dictionaries(st.sampled_from(Cause), st.floats(0, 1), min_size=1), st.floats(0, 0.9))
def test_whatever_came_out_can_be_said_and_kept(tried: dict[Cause, float], distributed: float) -> None:
    assume(abs(0.97 - distributed) > 0.05)
    found = diagnosis(tried, distributed=distributed)
    shares = [finding.share.value for finding in found.findings]
    assert shares == sorted(shares, reverse=True)
    assert found.verdict.endswith(".")
    kept = json.loads(json.dumps(found.to_json()))
    assert [finding["share"]["value"] for finding in kept["findings"]] == shares
    assert set(found.found) <= set(tried)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (Share(value=0.987, error=0.004), "98.7% ± 0.4%"),
        (Share(value=0.751, error=0.12), "75% ± 12%"),
        (Share(value=0.5, error=None), "50%"),
        (Share(value=-0.0003, error=0.001), "0.0% ± 0.1%"),
    ],
)
def test_shares_are_said_as_surely_as_they_are_known(share: Share, text: str) -> None:
    assert percent(share) == text


def test_names_in_a_sentence() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_a_change_can_be_of_two_causes() -> None:
    assert isinstance(BY_CAUSE[Cause.BATCH] & BY_CAUSE[Cause.SHARDS], Change)
