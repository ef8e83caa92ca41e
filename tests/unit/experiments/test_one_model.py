"""Models of several numbers of workers: the rows, the tables and the promises."""

from __future__ import annotations

from dataclasses import asdict, replace

import pandas as pd

from experiments.one_model import CODES, NUMBERS, Pair, Run, page_tables, rows_of, targets
from experiments.shared.benchmark import targets_to_json

RUN = Run(workers=1, external=False, auc=0.8123456, difference=0.0, bins=2.0, build=3.0, start=20.0)
RUNS = [RUN, replace(RUN, workers=3, external=True, difference=2e-7, bins=4.0)]
PAIR = Pair(here=0.8001, theirs=0.8002, here_seconds=2.0, their_seconds=4.0)


def test_the_same_seed_makes_the_same_rows() -> None:
    made = rows_of(7, 50)
    pd.testing.assert_frame_equal(made, rows_of(7, 50))
    assert made.shape == (50, NUMBERS + CODES + 2)
    assert made["x3"].isna().any()
    assert (made["w"] > 0).all()


def test_the_tables_and_promises_are_made_of_the_result() -> None:
    kept = targets(RUNS, [PAIR, replace(PAIR, here=0.8003)])
    assert [target.kept for target in kept] == [True] * 4
    assert [round(target.measured, 9) for target in kept] == [2e-7, 0.0, 0.2, 0.5]
    made = page_tables(
        {
            "rows": 2_000_000,
            "runs": [asdict(run) for run in RUNS],
            "pairs": [asdict(PAIR)],
            "targets": targets_to_json(kept),
        }
    )
    assert "| 3 | on disk | 0.812346 | 2e-07 | 4.0 s | 3.0 s | 0.20 |" in made["runs"]
    assert "| 1 | 0.800100 | 0.800200 | 2.0 s | 4.0 s |" in made["pairs"]
    assert "2,000,000" in made["short"]


def test_models_that_are_apart_miss_the_promise() -> None:
    assert not targets([RUN, replace(RUN, workers=2, difference=1e-3)], [PAIR])[0].kept
