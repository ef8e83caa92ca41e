"""Searches of several sizes: what is asked of them, and the free one beside the one of one answer."""

from __future__ import annotations

from experiments.search_sizes import GANGS, large


def test_a_large_job_takes_as_long_as_its_gangs_and_its_suggestions() -> None:
    made = large(40)
    assert made["least_seconds"] == 40 / GANGS
    assert 3 <= made["simulated_seconds"] < 4.5
    assert 0 < made["suggestion_median"] <= made["suggestion_longest"]
