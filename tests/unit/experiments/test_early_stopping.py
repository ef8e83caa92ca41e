"""Hyperband beside random search: the same trials in each, equal rounds, and the words that its figures allow."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from experiments.early_stopping import page_tables
from experiments.stopping.page import result
from experiments.stopping.problems import BANK
from experiments.stopping.ways import Found, Pairs, Way, nothing_cut
from hpo.strategies.hyperband import lay_out
from tests.support.lines import line_with
from tests.support.refusals import mentions, missing_names
from trainers.datasets import load

MARKETING = load("bank-marketing-synthetic")


def found(validation: float, rounds: int, configurations: int = 30, *, read: bool = False) -> Found:
    return Found(
        validation=validation,
        test=validation - 0.01,
        configurations=configurations,
        rounds=rounds,
        seconds=None if read else rounds / 100,
    )


def seeds(*hyperband: float) -> Pairs:
    """Random search finds 0.78 and 0.775 in each; all to the end 0.79."""
    return [
        {
            Way.MODEL: found(each + 0.005, 231),
            Way.EQUAL_TO_MODEL: found(0.775, 240, 8, read=True),
            Way.HYPERBAND: found(each, 334),
            Way.EQUAL: found(0.78, 330, 11, read=True),
            Way.ALL: found(0.79, 900),
        }
        for each in hyperband
    ]


def made(*hyperband: float) -> Any:
    """As result.json holds it."""
    return json.loads(json.dumps(result(BANK, replace(MARKETING, synthetic=False), seeds(*hyperband))))


def test_trials_that_are_not_cut_keep_their_rungs() -> None:
    plan = lay_out(30, 1, 30)
    whole = nothing_cut(plan)
    assert whole.trials == 30
    assert whole.resource == 900
    assert [bracket.rungs for bracket in whole.brackets] == [bracket.rungs for bracket in plan.brackets]


def test_the_tables_come_from_the_result_alone() -> None:
    tables = page_tables(made(0.78, 0.79))
    line_with(tables["ways"], "validation AUC", "standard error", tables["row_error"])
    assert "| configurations | 30 | 8 | 30 | 11 | 30 |" in tables["ways"]
    assert "| rounds | 231 | 240 | 334 | 330 | 900 |" in tables["ways"]
    assert "| of all rounds | 25.7% | 26.7% | 37.1% | 36.7% | 100.0% |" in tables["ways"]
    line_with(tables["ways"], "seconds", "gang", "median", "| 2.3 | | 3.3 | | 9.0 |")
    means = "0.7900 ± 0.0050 | 0.7750 ± 0.0000 | 0.7850 ± 0.0050 | 0.7800 ± 0.0000 | 0.7900 ± 0.0000"
    assert f"| {means} |" in tables["ways"]
    line_with(tables["differences"], "Hyperband", "model", "random", "+0.0150 ± 0.0050", "better", "3.0 times")
    within = line_with(tables["differences"], "Hyperband", "random", "-0.0050 ± 0.0050", "standard error")
    assert missing_names(within, "worse")
    assert "| at most 0.15 | 0.257 | **missed** |" in tables["aim"]
    line_with(tables["aim"], "| at least -0.001 | 0 | kept |", "+0.0000 ± 0.0050", "standard error")


@pytest.mark.parametrize(
    ("hyperband", "names", "beaten"),
    [
        ((0.785, 0.786), ("+0.0055 ± 0.0005", "better", "11.0 times"), False),
        ((0.779, 0.782), ("+0.0005 ± 0.0015",), True),
        ((0.770, 0.772), ("-0.0090 ± 0.0010", "worse", "9.0 times"), True),
    ],
)
def test_the_verdict_says_what_the_figures_allow(
    hyperband: tuple[float, ...], names: tuple[str, ...], beaten: bool
) -> None:
    verdict = made(*hyperband)["verdict"]
    mentions(verdict, "2 seeds", "30 trials", "30 rounds", "Hyperband", "model", "25.7%", "8 configurations")
    with_a_model, _, random = verdict.partition("Hyperband over random")
    mentions(random, "11 configurations", *names, "standard error")
    assert (not missing_names(random, "not beat")) is beaten
    assert (not missing_names(with_a_model, "not beat")) is (max(hyperband) < 0.773)
