"""What the benchmark of XGBoost on gangs makes of its measurements, and how it measures; no Ray."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import xgboost
from rich.console import Console

from experiments.baselines.trial_by_turns import Turns
from experiments.shared.benchmark import Target
from experiments.workloads.shared_evaluation import Evaluating
from experiments.workloads.timed_job import Memory, Share
from experiments.workloads.timed_trainer import TimedProgram, TimedTrainer, _timed
from experiments.xgboost_efficiency import Measured, page_tables, result, show, targets
from tests.support.lines import line_with
from tests.support.refusals import mentions

MEASURED = Measured(
    share=Share(
        rows=1000,
        workers=2,
        rounds=100,
        inside=95.0,
        billed={"starting": 2.0, "training": 96.0, "idle": 1.0, "checkpointing": 1.0},
    ),
    turns=Turns(
        workers=2,
        rows=1000,
        rounds=30,
        seconds={"here": [1.0, 2.0, 3.3], "by hand": [1.0, 2.0, 3.0], "xgboost_ray": [9.0, 8.0, 9.5]},
        difference=0.0,
    ),
    exactness={1: 0.0, 2: 1e-12, 3: 1e-9},
    memory=Memory(
        rows=3000,
        workers=3,
        shard=280_000_000,
        steady=[500_000_000, 600_000_000, 550_000_000],
        peak=5_000_000_000,
        store=900_000_000,
        driver=(1_000_000_000, 1_000_400_000),
        trials=20,
    ),
    evaluating=Evaluating(
        rows=16_000,
        evaluated=3200,
        shares=16,
        update=0.1,
        seconds={
            "here": 0.005,
            "by hand": 0.004,
            "prediction": 0.003,
            "one split": 0.002,
            "here, AUC": 0.01,
            "whole": 0.3,
        },
    ),
)


def test_shares_are_of_all_billed_and_of_those_since_the_gang_was_up() -> None:
    assert MEASURED.share.whole == pytest.approx(0.95)
    assert MEASURED.share.since_up == pytest.approx(95 / 98)
    assert MEASURED.share.round_seconds == pytest.approx(0.475)


def test_turns_are_compared_one_by_one() -> None:
    assert MEASURED.turns.ratios == pytest.approx([1.0, 1.0, 1.1])


@pytest.mark.parametrize(
    ("index", "worse"),
    [
        (0, {"share": replace(MEASURED.share, inside=89.0)}),
        (1, {"turns": replace(MEASURED.turns, seconds={"here": [1.1, 2.2, 3.0], "by hand": [1.0, 2.0, 3.0]})}),
        (2, {"exactness": {1: 0.0, 2: 2e-6}}),
        (3, {"memory": replace(MEASURED.memory, steady=[1, 2, 681_000_000])}),
        (4, {"memory": replace(MEASURED.memory, peak=8_100_000_000)}),
        (5, {"memory": replace(MEASURED.memory, driver=(1_000_000_000, 1_010_100_000))}),
        (6, {"evaluating": replace(MEASURED.evaluating, update=0.04)}),
    ],
)
def test_a_missed_promise_is_said_to_be_missed(index: int, worse: dict) -> None:
    made: list[Target] = targets(replace(MEASURED, **worse))
    assert [target.kept for target in made] == [other != index for other in range(7)]
    assert all(target.kept for target in targets(MEASURED))


def test_the_result_is_json_and_the_tables_show_it() -> None:
    made = json.loads(json.dumps(result(MEASURED, {"name": "bank-marketing", "repeat": 100})))
    assert made["turns"]["seconds"]["here"] == [1.0, 2.0, 3.3]
    assert [target["kept"] for target in made["targets"]] == [True] * 7
    console = Console(file=StringIO(), width=200)
    console.print(show(MEASURED))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "missed" not in printed
    assert "9.500" in printed


def test_the_pages_tables_are_made_of_the_result() -> None:
    made = page_tables(json.loads(json.dumps(result(MEASURED, {"name": "bank-marketing", "repeat": 100}))))
    assert made.keys() == {"share", "turns", "evaluation", "memory", "exactness", "promises", "ratio"}
    about, _, table = made["share"].partition("\n\n")
    mentions(about, "100 rounds", "2 workers", "1,000 rows", "475 ms")
    line_with(table, "billed", "| 95.0% |")
    line_with(table, "XGBoost", "billed", "gang", "| 96.9% |")
    assert "| by hand | 2.000 | 1.000 | 3.000 |" in made["turns"]
    assert "| all rows, AUC, XGBoost by hand | 300.0 | 75.0% |" in made["evaluation"]
    assert "| worker 1, in steady state | 600 |" in made["memory"]
    assert made["ratio"] == "1.00 times"
    assert made["exactness"].endswith("| 2 | 1e-12 |\n| 3 | 1e-09 |")


def test_evaluation_is_a_part_of_the_whole_round() -> None:
    assert MEASURED.evaluating.part("here") == pytest.approx(0.005 / 0.105)
    assert MEASURED.evaluating.part("whole") == pytest.approx(0.75)


def test_only_xgboosts_update_and_evaluation_are_timed() -> None:
    random = np.random.default_rng(1)
    features = random.normal(size=(200, 3))
    matrix = xgboost.DMatrix(features, features[:, 0] > 0)
    booster = xgboost.Booster({"objective": "binary:logistic", "nthread": 1}, [matrix])
    watched = xgboost.Booster.update, xgboost.Booster.eval_set, xgboost.Booster.predict, xgboost.collective.allreduce
    with _timed() as taken:
        booster.update(matrix, 0)
        booster.eval_set([(matrix, "validation")], 0)
        booster.predict(matrix)
        booster.save_raw("ubj")
    assert len(taken) == 3
    assert min(taken) > 0
    after = xgboost.Booster.update, xgboost.Booster.eval_set, xgboost.Booster.predict, xgboost.collective.allreduce
    assert after == watched


def test_the_noting_trainer_runs_the_noting_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARMBAND_NOTES", str(tmp_path))
    assert isinstance(TimedTrainer().program({}), TimedProgram)
