"""The table of scaling out: what each setting trains, what is said of its scores, and short runs in this process."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from experiments import scale_out
from experiments.scaling.measured import Measured, Training, result, verdict
from experiments.scaling.page import most_apart, no_drop, table
from experiments.scaling.shard_models import mean_of_parts
from experiments.scaling.tables import speed_up
from experiments.shared.benchmark import write
from experiments.shared.blog import FIRST
from hpo.report import Measured as Value
from tests.support.experiments.scale_out import APART, MARKETING, ROWS, made
from tests.support.lines import line_with
from tests.support.refusals import mentions, missing_names


def test_settings_differ_in_their_distribution_alone() -> None:
    blog = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 100, "epochs": 20}
    servers = {"num_workers": 4}
    assert {name: dict(row.trainer.hyperparameters) for name, row in ROWS.items() if row.problem == "image"} == {
        "image-1": blog,
        "image-4-async": blog | servers | {"mode": "async"},
        "image-4-allreduce": blog,
        "image-4-sync": blog | servers | {"mode": "sync"},
        "image-4-bounded": blog | servers | {"mode": "bounded", "staleness_bound": 3},
    }
    boosted = [row.trainer for row in ROWS.values() if row.problem == "xgboost"]
    assert boosted[0].hyperparameters == boosted[1].hyperparameters == boosted[2].hyperparameters
    assert [trainer.workers for trainer in boosted] == [1, 3, 3]
    assert boosted[2].options["backend"] == "xgboost_ray"
    for row in ROWS.values():
        assert (row.trainer.scaling.resources_per_worker or {"CPU": 1}) == {"CPU": 1}
    assert set(FIRST) <= set(ROWS)


def test_what_does_not_come_out_is_said() -> None:
    said = verdict(made(), MARKETING)
    mentions(said, "4 asynchronous workers", "0.110", "one worker", "0.970", "0.7600 ± 0.0180")
    assert said.count("0.7600 ± 0.0180") == 2
    mentions(said, "generated", "blog", 0.63, "not come")
    for seeds in (1, 2):  # Seeds that agree say nothing of the rows, whose noise is the larger.
        near = verdict(made(seeds, **{"xgboost-3-allreduce": 0.64}), MARKETING)
        assert missing_names(mentions(near, "blog", 0.63), "not come")
    real = replace(MARKETING, synthetic=False)
    assert "generated" not in verdict(made(), real)


def test_why_the_drop_does_not_come_out_is_told_with_figures() -> None:
    said = no_drop(made(), APART)
    mentions(said, "0.7200", "0.7400", 0.63)
    mentions(no_drop(made(), replace(APART, averaged=0.62)), "0.6200", "published")
    assert most_apart(*(made()[name] for name in ("xgboost-1", "xgboost-3-allreduce"))) == 0
    apart = made(**{"xgboost-3-allreduce": 0.7})
    assert most_apart(apart["xgboost-1"], apart["xgboost-3-allreduce"]) == pytest.approx(0.06)
    mentions(no_drop(apart, APART), "0.0600")
    assert missing_names(said, "0.0600", "published") == ["0.0600", "published"]


def test_the_table_has_a_row_a_setting_with_errors_and_the_blogs_figures() -> None:
    shown = table(made())
    titles = [column if isinstance(column, str) else column.title for column in shown.columns]
    assert [len(row) for row in shown.rows] == [len(titles)] * len(ROWS)
    first = dict(zip(titles, shown.rows[0], strict=True))
    assert first["validation, last"] == Value(0.97, 0.018)
    assert first["validation, best"] == Value(0.98, 0.018)
    assert [dict(zip(titles, row, strict=True))["the blog's"] for row in shown.rows] == [
        *(0.97, 0.11, None, None, None),
        *(0.78, 0.63, None),
    ]
    assert [dict(zip(titles, row, strict=True))["its minutes"] for row in shown.rows] == [
        *(8, 3, None, None, None),
        *(3, 1, None),
    ]
    assert "not at hand" not in shown.caption
    several = table(made(seeds=3))
    assert len(several.columns) == len(titles) + 2
    assert several.rows[0][-7] == pytest.approx(0.001 / math.sqrt(3))


def test_the_result_is_json_with_every_curve() -> None:
    kept = json.loads(json.dumps(result(made(seeds=2), MARKETING, APART)))
    assert [row["row"] for row in kept["rows"]] == list(ROWS)
    assert kept["rows"][0]["trainings"][1]["curves"]["test"][-1] == pytest.approx(0.971)
    assert kept["rows"][0]["test"]["standard_error_over_seeds"] == pytest.approx(0.0005)
    assert kept["without_sharing_histograms"]["alone"] == [0.73, 0.74, 0.72]


def test_the_tables_of_the_docs_come_from_the_result_alone(tmp_path: Path) -> None:
    measured = made(seeds=2)
    measured["image-4-bounded"] = replace(
        measured["image-4-bounded"], trainings=[Training(diverged=True)], work=math.nan
    )
    tables = scale_out.page_tables(json.loads(write(tmp_path, result(measured, MARKETING, APART)).read_text()))
    lines = tables["settings"].splitlines()
    assert len(lines) == 2 + len(ROWS)
    assert "| 0.97050 ± 0.00050 | 0.97 | 8 | 4.0 | 4.0 | 60 |" in lines[2]
    assert "| 0.11 | 3 | 4.0 | 1.0 | 60 |" in lines[3]
    assert "| diverged | diverged | diverged | | | | | |" in lines[6]
    line_with(tables["apart"], "blog", "3 instances", "| 0.740 |")
    line_with(tables["apart"], "mean", "predictions", "| 0.7500 |")


def test_the_speed_up_is_told_by_the_clock_and_by_the_work() -> None:
    def said(measured: dict[str, Measured], cores: int) -> str:
        return speed_up(result(measured, MARKETING, APART)["rows"], cores)

    told = said(made(), 2)
    mentions(told, "blog", "8 minutes", 4, "2.7 times", "1.0 times", "3 minutes", "3.0 times")
    mentions(told, "4.0 times", "processor seconds", "cannot")
    assert missing_names(said(made(), 8), "cannot")
    lost = made()
    lost["image-4-async"] = replace(lost["image-4-async"], trainings=[Training(diverged=True)])
    mentions(said(lost, 2), "without", "wall clock", "4.0 times")
    lost = made()
    lost["image-1"] = replace(lost["image-1"], trainings=[Training(diverged=True)])
    mentions(said(lost, 2), "without", "wall clock")
    assert missing_names(told, "without")


def test_an_auc_averaged_over_skewed_parts_is_another() -> None:
    """Every part ranks its own rows without a mistake; only rows of different parts are mixed up."""
    labels = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    scores = np.array([0.1, 0.6, 0.2, 0.7, 0.1, 0.6, 0.2, 0.7])
    assert mean_of_parts(labels, scores, 2) == 1.0
    assert mean_of_parts(labels, scores, 1) == 0.75
    one_class = np.array([0, 1, 0, 1])
    assert math.isnan(mean_of_parts(one_class, one_class * 1.0, 2))


def test_the_command_takes_the_options_that_all_experiments_take() -> None:
    app = Typer()
    app.command()(scale_out.main)
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    for option in ("--quick", "--data-dir", "--seed", "--seeds", "--repeat", "--out", "--address"):
        assert option in shown
