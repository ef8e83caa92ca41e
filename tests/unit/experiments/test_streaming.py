"""What the rates of streams come to."""

from __future__ import annotations

from experiments.shared.benchmark import targets_to_json
from experiments.streaming import HERE, THERE, page_tables, targets, turn

RATES = {HERE: [100.0, 300.0, 200.0], THERE: [100.0, 200.0, 250.0]}


def test_the_promise_is_on_the_median_of_ratios_within_turns() -> None:
    [promise] = targets(RATES)
    assert promise.measured == 1.0
    assert promise.kept


def test_the_page_has_a_line_for_each_way() -> None:
    tables = page_tables({"rates": RATES, "targets": targets_to_json(targets(RATES))})
    assert "| here, `Examples.ray_data` | 200 (100 to 300) |" in tables["rates"]
    assert "kept" in tables["promises"]


def test_each_turn_is_of_one_way_and_both_are_first_alike() -> None:
    here, there = ([turn(number, here=way) for number in range(4)] for way in (True, False))
    assert sorted(here + there) == list(range(8))
    assert [one < other for one, other in zip(here, there, strict=True)] == [True, False, True, False]
