"""The simulated spot market: reclaims change what a job takes, never what it finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.spot_market import ON_DEMAND, Market, Ran, compare, main, page_tables, run, summarized, way


@pytest.fixture(scope="module")
def found() -> dict[str, list[Ran]]:
    return compare((0.0, 2.0), range(2), 60.0)


def test_a_machine_that_stays_takes_what_an_on_demand_one_does(found: dict[str, list[Ran]]) -> None:
    [straight], [stays] = found[ON_DEMAND], found[way(0.0, True)]
    assert stays == straight
    assert straight.reclaims == 0


def test_what_is_halted_at_the_notice_is_not_trained_again(found: dict[str, list[Ran]]) -> None:
    for job in found[way(2.0, True)]:
        assert job.reclaims > 0
        assert job.in_vain == 0
    for job in found[way(2.0, False)]:
        assert job.in_vain > 0


def test_units_that_take_longer_than_the_notice_are_lost() -> None:
    assert run(Market(rate=4.0, seed=1, listened=True), 300.0).in_vain > 0


def test_the_same_market_gives_the_same_job() -> None:
    market = Market(rate=2.0, seed=3, listened=False)
    assert run(market, 60.0) == run(market, 60.0)


def test_savings_are_against_the_full_price(found: dict[str, list[Ran]]) -> None:
    rows = {row["way"]: row for row in summarized(found, 0.7)}
    assert rows[ON_DEMAND]["saved"] == 0
    assert rows[way(0.0, True)]["saved"] == pytest.approx(0.7)
    assert rows[way(2.0, False)]["saved"] < rows[way(2.0, True)]["saved"]
    assert rows[way(2.0, False)]["time_lost"] > rows[way(2.0, True)]["time_lost"] > 0


def test_a_quick_run_writes_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(out=tmp_path, quick=True)
    assert "Simulated" in capsys.readouterr().out
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["simulated"]
    assert len(result["ways"]) == 4
    assert not any("answer" in job for jobs in result["jobs"].values() for job in jobs)


def test_the_pages_table_has_a_row_a_rate() -> None:
    none = {"time_lost": 0.0, "saved": 0.7, "units_in_vain": 0.0}
    result = {
        "assumptions": {"rates": [0.0, 2.0]},
        "ways": [
            {"way": way(0.0, True), **none},
            {"way": way(2.0, True), "time_lost": 0.0102, "saved": 0.718, "units_in_vain": 0.0},
            {"way": way(2.0, False), "time_lost": 0.651, "saved": 0.6184, "units_in_vain": 139.2},
        ],
    }
    assert page_tables(result)["rates"].splitlines()[2:] == [
        "| 0 | 0.0% | 70.0% | 0.0% | 70.0% | 0 |",
        "| 2 | 1.0% | 71.8% | 65.1% | 61.8% | 139 |",
    ]
