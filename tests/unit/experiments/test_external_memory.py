"""Figures of external memory: rows on disk, XGBoost by hand on them, and the tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.external.limited import held
from experiments.external.rows import generated
from experiments.external_memory import allowed, page_tables, targets
from experiments.shared.benchmark import targets_to_json
from tests.support.lines import line_with
from trainers import Channel

RUN = {"external": True, "limit": 10**9, "auc": 0.875, "rounds": 20, "rounds_a_second": 2.0, "seconds": 60.0}
ROWS = {"rows": 1_000_000, "columns": 10}


def test_rows_are_the_same_each_time_and_written_in_groups(tmp_path: Path) -> None:
    made = [generated(tmp_path / name, 3000, 5) for name in ("one", "two")]
    shards = [Channel.of(rows.train, target="y").read(0, 1) for rows in made]
    np.testing.assert_array_equal(shards[0].features, shards[1].features)
    assert (made[0].bytes, shards[0].features.shape) == (60_000, (3000, 5))
    assert 0.2 < shards[0].labels.mean() < 0.8


def test_tables_of_runs_and_jobs() -> None:
    runs = {
        "rows": ROWS,
        "runs": [{**RUN, "most": [8e8, 9e8]}, {"external": False, "limit": 10**9, "error": "it died"}],
    }
    kept = targets("larger", runs)
    assert [(target.measured, target.kept) for target in kept] == [(0.9, True), (1, True)]
    made = page_tables({**runs, "targets": targets_to_json(kept)})
    assert "| on disk | 1 GB | 0.875000 | 0.90 GB | 2.00 | 60 s |" in made["runs"]
    line_with(made["runs"], "kernel", "workers")
    worker = {"gang": 2, "trials": 100, "before": 2e8, "first": 3e8, "last": 3e8, "most": 3e8}
    jobs = {"rows": ROWS, "jobs": [{"external": False, "trials": 200, "workers": [worker]}]}
    [kept_by_one] = targets("trials", jobs)
    assert (kept_by_one.measured, kept_by_one.limit) == (300, pytest.approx(200 + 30 + 40 + 100))
    assert "| in memory | 2 | 100 | 200 MB | 300 MB | 300 MB | 300 MB |" in page_tables({**jobs, "targets": []})["jobs"]
    assert allowed(worker, ROWS, external=True) < kept_by_one.limit * 1e6


def test_what_is_held_is_read_from_the_kernel() -> None:
    now = held()
    assert 0 < now["own"] <= now["resident"] <= now["most"]
