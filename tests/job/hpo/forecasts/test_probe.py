"""What the probe measures in this process, and what it makes of figures; one test trains on Ray."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from hpo.cost.throughput import PROBE_UNITS, WARM_UP_UNITS
from hpo.forecasts import one_worker
from hpo.forecasts.one_worker import OneWorker, measure_here, rows_of
from tests.support import bad_input
from tests.support.boosting import CHANNELS
from tests.support.hpo.forecasts.probe import (
    Noting,
    csv,
    noting,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import mentions
from trainers.channels import open_channels
from trainers.gangs.in_process import cores


def test_of_units_that_take_long_the_second_is_measured(noting: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_worker, "MOST_SECONDS", 0.0)
    Noting.sleeps = [1.5]
    one = measure_here(noting, open_channels(CHANNELS))
    assert isinstance(one, OneWorker)
    assert Noting.asked == [WARM_UP_UNITS, PROBE_UNITS], "and is ended by the first report"
    assert not one.cold
    # Not with the threads of a worker as well, which would take as long again.
    assert one.a_round == one.a_worker_round
    assert one.threads == one.worker_threads == cores(None)


@pytest.mark.parametrize("rows", [5, 1_600])
def test_a_job_says_how_many_rows_a_csv_file_has(rows: int, tmp_path: Path) -> None:
    channel = csv(tmp_path / "rows.csv", rows)
    assert rows_of(channel) == (rows, False)
    printed = io.StringIO()
    tuner = bad_input.make(0, max_jobs=1, console=Console(file=printed, width=300))
    tuner.fit({"train": channel, "validation": channel})
    mentions(printed.getvalue(), f"{rows:,} rows", "3 features")
    assert tuner.describe()["Summary"]["probe"]["one_worker"]["rows"] == rows
