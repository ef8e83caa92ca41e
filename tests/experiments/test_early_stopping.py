"""Hyperband beside random search: the same trials in each, equal rounds, and the words that its figures allow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.early_stopping import page_tables
from experiments.shared.network import channels
from experiments.stopping.kept_gangs import KeptGangs
from experiments.stopping.page import result
from experiments.stopping.problems import BANK, DIGITS, StoppingProblem
from experiments.stopping.ways import Found, Pairs, Place, Way, each_way, nothing_cut
from hpo.strategies.hyperband import Bracket, Plan, lay_out
from tests.support.lines import line_with
from tests.support.refusals import mentions, missing_names
from trainers import Channel
from trainers.datasets import Dataset, load
from trainers.gangs.in_process import InHand

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


def place(problem: StoppingProblem, dataset: Dataset, folder: Path) -> Place:
    """In this process."""
    trainer = problem.trainer(0)
    placed = {name: Channel.of(rows, name=name).place(0) for name, rows in channels(dataset).items()}
    kept = KeptGangs(InHand("test", trainer.program(placed), trainer.scaling))
    return Place(problem=problem, gangs=kept, storage_path=str(folder / "results" / "checkpoints"), workers=1)


def test_trials_that_are_not_cut_keep_their_rungs() -> None:
    plan = lay_out(30, 1, 30)
    whole = nothing_cut(plan)
    assert whole.trials == 30
    assert whole.resource == 900
    assert [bracket.rungs for bracket in whole.brackets] == [bracket.rungs for bracket in plan.brackets]


def test_the_first_trials_are_those_of_a_search_of_so_many(tmp_path: Path) -> None:
    """In hand, few rows: real trainings, which end with the same scores to the last bit."""
    few = replace(
        MARKETING, train=MARKETING.train[:400], validation=MARKETING.validation[:300], test=MARKETING.test[:300]
    )
    here = place(replace(BANK, units=9), few, tmp_path)
    plan = lay_out(9, 1, 9)
    whole = here.search("all", nothing_cut(plan), 1)
    for trials in (2, 5, 7):
        left, brackets = trials, []
        for bracket in plan.brackets:
            size = min(bracket.sizes[0], left)
            left -= size
            brackets += [Bracket(rungs=bracket.rungs, sizes=(size,) * len(bracket.rungs))] if size else []
        alone = here.search("few", Plan(brackets=tuple(brackets), max_resource=9), 1).found()
        assert replace(alone, seconds=None) == whole.first(trials)
        assert alone.rounds == trials * 9


def test_random_search_stands_beside_each_hyperband_with_as_many_rounds(tmp_path: Path) -> None:
    few = replace(
        MARKETING, train=MARKETING.train[:400], validation=MARKETING.validation[:300], test=MARKETING.test[:300]
    )
    here = place(replace(BANK, units=9), few, tmp_path)
    came = {}
    for seed in (0, 1):
        came = each_way(here, seed, 9)
        model, as_many, cut, equal, full = (came[way] for way in Way)
        assert model.configurations == 9
        assert model.rounds == 31
        assert full.rounds == 81
        assert cut.rounds < 81
        for one, other in ((as_many, model), (equal, cut)):
            assert one.rounds == one.configurations * 9
            assert abs(one.rounds - other.rounds) <= 4.5
            assert one.seconds is None
        assert full.validation >= max(as_many.validation, equal.validation, cut.validation)
    again = each_way(here, 1, 9)
    assert [replace(each, seconds=0) for each in again.values()] == [replace(each, seconds=0) for each in came.values()]


def test_the_network_learns_digits_and_is_searched_in_the_same_way(tmp_path: Path) -> None:
    digits = DIGITS.load(None)
    came = each_way(place(replace(DIGITS, units=3), digits, tmp_path), 0, 4)
    assert came[Way.ALL].rounds == 12
    assert came[Way.ALL].validation > 0.5
    assert came[Way.ALL].validation * len(digits.validation[1]) % 1 == pytest.approx(0, abs=1e-9)
    tables = page_tables(json.loads(json.dumps(result(DIGITS, digits, [came]))))
    assert "| epochs |" in tables["ways"]
    assert "validation accuracy" in tables["differences"]
    line_with(tables["aim"], "epochs", "model")


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
