"""What the start-up benchmark makes of its measurements, and its job in one process; no Ray."""

import json
import math
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from experiments.baselines.optuna_trials import PlainOptuna
from experiments.baselines.ray_as_documented import Documented
from experiments.shared.benchmark import write
from experiments.startup import Startup, main, page_tables, result, show, targets
from experiments.workloads.small_job import parameters
from experiments.workloads.warm_gangs import WarmGangs, WarmJob
from hpo.record.store import TrialRow
from tests.support.lines import line_with
from tests.support.refusals import mentions, missing_names

AUCS = [0.7, 0.75, 0.6, 0.7]
ALONE = Documented(at_once=1, first_step=14.0, starts=[11.0, 9.0, 8.0, 10.0], job=204.0, ray=4.0, objectives=AUCS)
SEVERAL = Documented(at_once=2, first_step=25.0, starts=[20.0, 19.0, 30.0, 25.0], job=184.0, ray=4.0, objectives=AUCS)
GANGS = WarmGangs(
    first_step={"ray.init": 3.0, "worker processes": 4.0},
    ups=[7.0, 9.0],
    starts=[0.01, 0.02, 0.03],
    added=[0.01, 0.02, 0.06],
    closing=1.0,
)
JOB = WarmJob(gangs=1, first_step=8.0, closing=2.0, job=9.0, objectives=AUCS)
HAND = WarmJob(gangs=1, first_step=0.5, closing=0.1, job=2.0, objectives=AUCS)
PLAIN = PlainOptuna(first_step=0.2, starts=[0.9, 0.004, 0.005, 0.006], job=1.5, objectives=AUCS)
MEASURED = Startup(
    alone=ALONE,
    at_once=SEVERAL,
    gangs=GANGS,
    jobs=[JOB, replace(JOB, job=8.0, first_step=7.0, closing=1.5), replace(JOB, job=7.0)],
    hand_starts=[0.002, 0.001, 0.003],
    hands=[HAND, replace(HAND, job=3.0), HAND],
    optunas=[PLAIN, PLAIN, replace(PLAIN, objectives=[*AUCS[:-1], 0.71])],
    threads=2,
)


def test_promises_are_of_medians_the_quicker_baseline_and_our_slowest():
    starts, job, first, closing, added = targets(MEASURED)
    assert starts.measured == pytest.approx(9.0 / 0.02)
    assert job.measured == pytest.approx(184.0 / 9.0)
    mentions(job.note, 2)
    assert (first.measured, closing.measured, added.measured) == (8.0, 2.0, 0.02)
    assert all(target.kept for target in targets(MEASURED))
    quicker = targets(replace(MEASURED, alone=replace(ALONE, job=104.0)))[1]
    assert quicker.measured == pytest.approx(104.0 / 9.0)
    mentions(quicker.note, 1)


@pytest.mark.parametrize(
    ("index", "worse"),
    [
        (0, {"gangs": replace(GANGS, starts=[0.05])}),
        (0, {"alone": replace(ALONE, starts=[60.0, 5.9])}),
        (1, {"jobs": [JOB, replace(JOB, job=11.0)]}),
        (2, {"jobs": [JOB, replace(JOB, first_step=12.1)]}),
        (2, {"gangs": replace(GANGS, first_step={"ray.init": 12.1})}),
        (3, {"gangs": replace(GANGS, closing=3.1)}),
        (3, {"jobs": [JOB, replace(JOB, closing=3.1)]}),
        (4, {"gangs": replace(GANGS, added=[0.031])}),
    ],
)
def test_a_missed_promise_is_said_to_be_missed(index: int, worse: dict):
    measured = replace(MEASURED, **worse)
    assert [target.kept for target in targets(measured)] == [other != index for other in range(5)]
    assert "missed" in printed(measured)
    assert page_tables(result(measured, {}))["promises"].count("missed") == 1


def test_a_shorter_baseline_is_scaled_and_says_so():
    few = {"starts": [20.0, 9.0], "objectives": [0.7, 0.75]}
    shorter = replace(MEASURED, alone=replace(ALONE, job=114.0, **few), at_once=replace(SEVERAL, job=104.0, **few))
    target = targets(shorter)[1]
    assert target.measured == pytest.approx((4.0 + 100.0 * 2) / 9.0)
    mentions(target.note, "scaled", "2 trials")
    line_with(page_tables(result(shorter, {}))["arms"], "204.0 s", "scaled", "2 of 4")
    assert "scaled" in printed(shorter)
    assert "scaled" not in printed(MEASURED)
    assert missing_names(mentions(page_tables(result(MEASURED, {}))["short"], "184 s"), "scaled")
    mentions(page_tables(result(shorter, {}))["short"], "204 s", "scaled", 2)
    app = typer.Typer()
    app.command()(main)
    refused = CliRunner().invoke(app, ["--baseline-trials", "2"])
    assert refused.exit_code == 2
    mentions(refused.output, "2 trials", 4)


def test_a_trial_without_an_auc_is_not_passed_over(tmp_path: Path):
    """Wherever it stands among the others, in a result that has null for it too."""
    for lost in ([math.nan, *AUCS[1:]], [*AUCS[:-1], math.nan]):
        failed = result(replace(MEASURED, hands=[HAND, replace(HAND, objectives=lost)]), {})
        for made in (failed, json.loads(write(tmp_path, failed).read_text())):
            line_with(page_tables(made)["differences"], "one process", "here", "trial", "AUC")


def test_the_result_is_json_with_every_figure():
    made = json.loads(json.dumps(result(MEASURED, {"name": "bank-marketing", "synthetic": False})))
    assert made["alone"]["starts"] == ALONE.starts
    assert made["gangs"]["added"] == GANGS.added
    assert [job["job"] for job in made["jobs"]] == [9.0, 8.0, 7.0]
    assert made["largest_difference_of_auc"] == {
        "as Ray documents it, alone": 0.0,
        "as Ray documents it, at once": 0.0,
        "on gangs, each time": 0.0,
        "one process, here": 0.0,
        "one process, Optuna": pytest.approx(0.01),
    }
    assert [target["kept"] for target in made["targets"]] == [True] * 5


def test_the_page_has_every_way_with_what_ran_at_once():
    tables = page_tables(json.loads(json.dumps(result(MEASURED, {}))))
    rows = [
        ("Ray", "alone", "1 x 3 workers", "| 14.0 s | 9.0 s | 10.0 s | 204.0 s |"),
        ("Ray", "2 x 3 workers", "| 25.0 s | 25.0 s | 30.0 s | 184.0 s |"),
        ("here", "2 x 3 workers", "1 x 3", "| 8.0 s (7.0 to 8.0) | 0.0200 s | 0.0300 s | 8.0 s (7.0 to 9.0) |"),
        ("num_workers=0", "2 threads", "| 0.5 s (0.5 to 0.5) | 0.0020 s | 0.0030 s | 2.0 s (2.0 to 3.0) |"),
        ("Optuna", "2 threads", "| 0.2 s (0.2 to 0.2) | 0.0050 s | 0.0060 s | 1.5 s (1.5 to 1.5) |"),
    ]
    for line, names in zip(tables["arms"].splitlines()[2:], rows, strict=True):
        mentions(line, *names)
    assert "| together | 7.00 s |" in tables["first-step"]
    line_with(tables["first-step"], "closing", "Ray", "| 2.0 s (1.5 to 2.0) |")
    line_with(tables["promises"], "starts", "| at least 300 x | 450 x | kept |")
    assert "| one process, Optuna | 1.0e-02 |" in tables["differences"]
    mentions(tables["short"], "0.020 s", "9.0 s", "25.0 s", "8.0 s", "184 s", "2.0 s", "1.5 s", "Optuna")


def test_all_give_xgboost_the_same_parameters():
    trial = TrialRow(job="startup", trial_id="startup-003", number=3, hyperparameters={"eta": 0.1})
    other = replace(trial, number=4)
    assert parameters(trial) == parameters(trial) != parameters(other)
    assert parameters(trial).items() >= {"eta": 0.1, "eval_metric": "auc", "nthread": 1}.items()
    assert parameters(trial, threads=2) == {**parameters(trial), "nthread": 2}


def printed(measured: Startup) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(show(measured, "title"))
    return console.file.getvalue()
