"""Gaps between scores: what is called a gain, and the words for it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings, strategies as st

from hpo.gap import Gap
from tests.support.properties import examples
from tests.support.refusals import mentions, missing_names

FINITE = st.floats(-1e6, 1e6)
ERRORS = st.none() | st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("value", "other", "error", "maximize", "outcome"),
    [
        (0.80, 0.75, 0.01, True, "gain"),
        (0.80, 0.75, 0.01, False, "worse"),
        (0.75, 0.80, 0.01, True, "worse"),
        (0.75, 0.80, 0.01, False, "gain"),
        (0.80, 0.75, 0.06, True, "no difference"),
        (0.75, 0.80, 0.06, True, "no difference"),
        (0.75, 0.50, 0.25, True, "no difference"),  # It has to be more than the error.
        (0.80, 0.75, None, True, "gain"),
        (0.75, 0.80, None, True, "worse"),
        (0.75, 0.75, None, True, "no difference"),
        (0.75, 0.75, 0.0, True, "no difference"),
        (0.80, 0.75, math.nan, True, "gain"),
        (0.80, 0.75, math.inf, True, "gain"),
    ],
)
def test_a_gain_is_more_than_the_standard_error(
    value: float, other: float, error: float | None, outcome: str, *, maximize: bool
) -> None:
    gap = Gap(value=value, other=other, error=error, maximize=maximize)
    assert gap.outcome == outcome
    assert gap.to_json()["outcome"] == outcome
    assert json.loads(json.dumps(gap.to_json())) == gap.to_json()


@settings(max_examples=examples(100))
@given(FINITE, FINITE, ERRORS, st.booleans(), st.integers(1, 5))
def test_both_directions_agree(value: float, other: float, error: float | None, maximize: bool, repeats: int) -> None:
    gap = Gap(value=value, other=other, error=error, maximize=maximize, repeats=repeats)
    back = Gap(value=other, other=value, error=error, maximize=maximize, repeats=repeats)
    against = Gap(value=value, other=other, error=error, maximize=not maximize, repeats=repeats)
    opposite = {"gain": "worse", "worse": "gain", "no difference": "no difference"}
    assert back.outcome == against.outcome == opposite[gap.outcome]
    if error is not None and abs(value - other) <= error:
        assert gap.outcome == "no difference"
    claimed = gap.outcome == "gain" and gap.known_error is not None
    assert ("gain" in gap.sentence) == ("gain" in gap.verdict) == claimed
    assert ("no difference" in gap.sentence) == (gap.outcome == "no difference")


def test_the_sentence_has_the_figures() -> None:
    mentions(Gap(value=0.80, other=0.75, error=0.01, maximize=True).sentence, "0.0500", 5.0, "one such score")
    mentions(Gap(value=0.80, other=0.75, error=0.04, maximize=True).sentence, "1.3", "chance")
    mentions(Gap(value=0.80, other=0.75, error=0.01, maximize=True, repeats=3).sentence, "that mean")
    mentions(Gap(value=0.80, other=0.75, error=0.06, maximize=True).sentence, "0.0500", "0.0600")
    mentions(Gap(value=0.80, other=0.75, error=None, maximize=True).sentence, "0.0500", "standard error", "not known")


@pytest.mark.parametrize("error", [None, 0.0, math.nan])
def test_better_by_an_unknown_standard_error_is_called_no_gain(error: float | None) -> None:
    gap = Gap(value=0.80, other=0.75, error=error, maximize=True)
    for text in (gap.verdict, gap.sentence):
        mentions(text, "0.0500", "better", "standard error is not known")
        assert "gain" not in text
    mentions(Gap(value=0.80, other=0.75, error=0.01, maximize=True).verdict, "a gain of 0.0500")


def test_lengths_are_said_where_they_differ() -> None:
    mentions(Gap(value=0.8, other=0.7, error=None, maximize=True, units=(9, 27)).sentence, "9 units", 27)
    for units in (None, (9, 9)):
        assert missing_names(Gap(value=0.8, other=0.7, error=None, maximize=True, units=units).sentence, "units")
