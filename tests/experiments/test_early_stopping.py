"""Hyperband beside random search: the same trials in each, equal rounds, and the words that its figures allow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from experiments.early_stopping import STATIC, Found, KeptGangs, Pairs, Way, each_way, nothing_cut, page_tables, result
from hpo.strategies.hyperband import lay_out
from trainers import Channel, XGBoostTrainer
from trainers.datasets import load
from trainers.gangs.in_process import InHand

MARKETING = load("bank-marketing-synthetic")


def found(validation: float, rounds: int, configurations: int = 30) -> Found:
    return Found(
        validation=validation,
        test=validation - 0.01,
        configurations=configurations,
        rounds=rounds,
        seconds=rounds / 100,
    )


def seeds(*hyperband: float) -> Pairs:
    """Random search finds 0.78 in each; all to the end 0.79."""
    return [
        {
            Way.MODEL: found(each + 0.005, 231),
            Way.HYPERBAND: found(each, 334),
            Way.EQUAL: found(0.78, 330, 11),
            Way.ALL: found(0.79, 900),
        }
        for each in hyperband
    ]


def made(*hyperband: float) -> Any:
    """As result.json holds it."""
    return json.loads(json.dumps(result(replace(MARKETING, synthetic=False), seeds(*hyperband))))


def test_fewer_trials_keep_their_rungs() -> None:
    plan = lay_out(30, 1, 30)
    whole = nothing_cut(plan, 30)
    assert whole.trials == 30
    assert whole.resource == 900
    assert [bracket.rungs for bracket in whole.brackets] == [bracket.rungs for bracket in plan.brackets]
    few = nothing_cut(plan, 13)
    assert few.resource == 390
    assert [(bracket.rungs, bracket.sizes[0]) for bracket in few.brackets] == [
        (plan.brackets[0].rungs, 11),
        (plan.brackets[1].rungs, 2),
    ]


def test_random_search_is_the_first_of_the_same_trials_for_as_many_rounds(tmp_path: Path) -> None:
    """In hand, few rows: real trainings."""
    few = {"train": MARKETING.train[:400], "validation": MARKETING.validation[:300], "test": MARKETING.test[:300]}
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}), hyperparameters=STATIC
    )
    placed = {name: Channel.of(rows, name=name).place(0) for name, rows in few.items()}
    program = trainer.program(placed)
    kept = KeptGangs(InHand("test", program, trainer.scaling))
    plan = lay_out(9, 1, 9)

    def ways(seed: int) -> dict[Way, Found]:
        return each_way(plan, seed, kept, str(tmp_path / "results" / "checkpoints"), workers=1)

    for seed in (0, 1):
        came = ways(seed)
        model, cut, equal, full = (came[way] for way in Way)
        assert model.configurations == 9
        assert model.rounds == 31
        assert full.rounds == 81
        assert cut.rounds < 81
        assert equal.rounds == equal.configurations * 9
        assert abs(equal.rounds - cut.rounds) <= 4.5
        assert full.validation >= max(equal.validation, cut.validation)
    again = ways(1)
    assert [replace(each, seconds=0) for each in again.values()] == [replace(each, seconds=0) for each in came.values()]


def test_the_tables_come_from_the_result_alone() -> None:
    tables = page_tables(made(0.78, 0.79))
    assert f"| validation AUC (standard error of one: {tables['row_error']}) |" in tables["ways"]
    assert "| configurations | 30 | 30 | 11 | 30 |" in tables["ways"]
    assert "| rounds | 231 | 334 | 330 | 900 |" in tables["ways"]
    assert "| of all rounds | 25.7% | 37.1% | 36.7% | 100.0% |" in tables["ways"]
    assert "| 0.7900 ± 0.0050 | 0.7850 ± 0.0050 | 0.7800 ± 0.0000 | 0.7900 ± 0.0000 |" in tables["ways"]
    assert (
        "| Hyperband, random minus random, as many rounds | +0.0050 ± 0.0050, within twice its standard error |"
        in tables["differences"]
    )
    assert (
        "| Hyperband, random minus all to the end | -0.0050 ± 0.0050, within twice its standard error |"
        in tables["differences"]
    )


@pytest.mark.parametrize(
    ("hyperband", "said", "beaten"),
    [
        (
            (0.785, 0.786),
            "it is +0.0055 ± 0.0005, better, 11.0 times its standard error. With a model, for 25.7% of the rounds",
            False,
        ),
        ((0.779, 0.782), "it is +0.0005 ± 0.0015, within twice its standard error: at equal", True),
        ((0.770, 0.772), "it is -0.0090 ± 0.0010, worse, 9.0 times its standard error: at equal rounds", True),
    ],
)
def test_the_verdict_says_what_the_figures_allow(hyperband: tuple[float, ...], said: str, beaten: bool) -> None:
    verdict = made(*hyperband)["verdict"]
    assert "2 seeds: for 37.1% of the rounds" in verdict
    assert "the first 11 of these configurations" in verdict
    assert said in verdict
    assert ("does not beat random search" in verdict) is beaten
