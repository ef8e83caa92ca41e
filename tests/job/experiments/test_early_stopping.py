"""Hyperband beside random search: the same trials in each, equal rounds, and the words that its figures allow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.early_stopping import page_tables
from experiments.shared.network import channels
from experiments.stopping.kept_gangs import KeptGangs
from experiments.stopping.page import result
from experiments.stopping.problems import BANK, DIGITS, StoppingProblem
from experiments.stopping.ways import Place, Way, each_way, nothing_cut
from hpo.strategies.hyperband import Bracket, Plan, lay_out
from tests.support.lines import line_with
from trainers import Channel
from trainers.datasets import Dataset, load
from trainers.gangs.in_process import InHand

MARKETING = load("bank-marketing-synthetic")


def place(problem: StoppingProblem, dataset: Dataset, folder: Path) -> Place:
    """In this process."""
    trainer = problem.trainer(0)
    placed = {name: Channel.of(rows, name=name).place(0) for name, rows in channels(dataset).items()}
    kept = KeptGangs(InHand("test", trainer.program(placed), trainer.scaling))
    return Place(problem=problem, gangs=kept, storage_path=str(folder / "results" / "checkpoints"), workers=1)


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
