"""Both sides of the one-process benchmark on generated rows, and what is made of their times."""

import json
from dataclasses import asdict

import pytest

from experiments.one_process import OneProcess, Run, page_tables, target
from experiments.shared.benchmark import targets_to_json


def run(milliseconds: float, rounds: int = 100) -> Run:
    return Run(seconds=milliseconds * rounds / 1000, rounds=rounds, best=0.7)


def test_the_ratio_is_by_rounds_the_median_of_pairs_against_the_faster_matrix():
    measured = OneProcess(
        threads=2,
        here=[run(4, 364), run(6, 364), run(90, 364)],
        optuna={"QuantileDMatrix": [run(4), run(5), run(80)], "DMatrix": [run(5), run(9), run(10)]},
    )
    assert measured.ratio_to("QuantileDMatrix") == pytest.approx(90 / 80)
    assert measured.ratio_to("DMatrix") == pytest.approx(0.8)
    assert (measured.matrix, measured.ratio) == ("QuantileDMatrix", pytest.approx(1.125))
    assert target(measured).kept
    assert not target(OneProcess(threads=2, here=[run(8)], optuna={"DMatrix": [run(5)]})).kept


def test_the_page_has_each_side_and_whether_the_promise_was_kept():
    measured = OneProcess(threads=2, here=[run(4, 364), run(9, 364)], optuna={"DMatrix": [run(2), run(3)]})
    result = {"one_process": asdict(measured), "targets": targets_to_json([target(measured)])}
    tables = page_tables(json.loads(json.dumps(result)))
    assert "| here, 2 threads | 2.37 | 364 | 6.50 | 0.7000 |" in tables["jobs"]
    assert "| Optuna, `DMatrix`, 2 threads | 0.25 | 100 | 2.50 | 0.7000 |" in tables["jobs"]
    assert "at most 1.5 x | 2.5 x | **missed** |" in tables["promises"]
    assert tables["ratio"] == "2.5 times"
