"""`hpo simulate`: its table, its JSON, and one line for each mistake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support.curves import keep, recorded, write
from tests.support.listed import hpo
from tests.support.refusals import mentions

JOB = """
data: {channels: {train: {path: train.csv, target: y}, validation: {path: validation.csv, target: y}}}
trainer: {type: xgboost, num_workers: 2, hyperparameters: {objective: "binary:logistic", eval_metric: auc}}
tuning:
  objective_metric_name: validation:auc
  strategy: Hyperband
  hyperband: {max_resource: 9}
  max_jobs: 12
  max_parallel_jobs: 2
  random_seed: 5
  ranges:
    eta: {type: continuous, min: 0.001, max: 1, scaling: Logarithmic}
    max_depth: {type: integer, min: 1, max: 6}
    booster: {type: categorical, values: [gbtree, dart]}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A job file and the option that names curves of its hyperparameters."""
    job = tmp_path / "job.yaml"
    job.write_text(JOB, encoding="utf-8")
    return [str(job), "--curves", str(write(recorded(), tmp_path / "curves.csv"))]


def test_the_job_s_own_search_is_simulated(files: list[str]) -> None:
    head, row, note = hpo("simulate", *files, "--seeds", "3", columns=200).splitlines()
    assert head.split() == [
        "strategy",
        "trials",
        "gangs",
        "regret",
        "best",
        "units",
        "of",
        "all",
        "wall",
        "s",
        "worker-s",
    ]
    assert row.split()[:3] == ["Hyperband", "12", "2"]
    mentions(note, 60, "curves.csv", 12)


def test_strategies_gangs_and_budgets_make_a_line_each(files: list[str]) -> None:
    asked = ["--strategy", "Random", "--strategy", "Hyperband", "--gangs", "1,4", "--max-jobs", "6,12", "--seeds", "2"]
    found = json.loads(hpo("simulate", *files, *asked, "--json"))
    assert [(row["strategy"], row["max_jobs"], row["gangs"]) for row in found["rows"]] == [
        (name, jobs, gangs) for name in ("Random", "Hyperband") for jobs in (6, 12) for gangs in (1, 4)
    ]
    assert len(found["notes"]) == 1
    by_key = {(row["strategy"], row["max_jobs"], row["gangs"]): row for row in found["rows"]}
    random, hyperband = by_key["Random", 12, 1], by_key["Hyperband", 12, 1]
    assert random["units"] == 12 * 9
    assert random["wall_seconds"] == 12 * 9 * 2
    assert random["worker_seconds"] == 2 * random["wall_seconds"]
    assert hyperband["units"] < random["units"]
    assert by_key["Hyperband", 12, 4]["regrets"] == hyperband["regrets"]
    assert random["cost"] is None


def test_repeats_go_along_one_curve(files: list[str]) -> None:
    asked = ["simulate", *files, "--seeds", "2", "--strategy", "Random", "--json"]
    once = json.loads(hpo(*asked, "--set", "tuning.max_jobs=4"))["rows"][0]
    said = json.loads(hpo(*asked, "--set", "tuning.repeats=3"))
    (row,) = said["rows"]
    assert (row["max_jobs"], row["units"]) == (12, 3 * once["units"])
    assert (row["best"], row["regrets"]) == (once["best"], once["regrets"])  # The same four configurations.
    mentions(said["notes"][-1], "configuration", 3)
    assert len(json.loads(hpo(*asked))["notes"]) == len(said["notes"]) - 1
    model = json.loads(hpo("simulate", *files, "--seeds", "1", "--set", "tuning.repeats=3", "--json"))
    assert model["rows"][0]["units"] < model["rows"][0]["most_units"]


def test_the_median_rule_of_the_job_file_stops_trials(files: list[str]) -> None:
    asked = ["simulate", *files, "--seeds", "2", "--json"]
    job = Path(files[0])
    job.write_text(
        JOB.replace("strategy: Hyperband", "strategy: Random")
        .replace("  hyperband: {max_resource: 9}\n", "")
        .replace("eval_metric: auc}", "eval_metric: auc, num_round: 9}"),
        encoding="utf-8",
    )
    whole, stopped = (
        json.loads(hpo(*asked, "--set", f"tuning.early_stopping_type={kind}", "--gangs", "1,4"))
        for kind in ("Off", "Auto")
    )
    assert [row["units"] for row in whole["rows"]] == [12 * 9] * 2
    one, four = stopped["rows"]
    assert one["units"] < 12 * 9 == one["most_units"]
    assert (one["units"], one["regrets"]) == (four["units"], four["regrets"])
    mentions(stopped["notes"][-1], "early_stopping_type", "Auto", 1, 3, "median")
    both = ["--set", "tuning.early_stopping_type=Auto", "--strategy", "Random", "--strategy", "Hyperband"]
    mentions(hpo(*asked, *both, code=2), "early_stopping_type", "'Auto'", "Hyperband", "'Off'")


def test_a_bill_in_money_where_there_are_prices(files: list[str]) -> None:
    priced = hpo(
        "simulate", *files, "--set", "cost={per_worker_hour: 3600, currency: EUR}", "--seeds", "1", columns=200
    )
    assert priced.splitlines()[0].split()[-1] == "cost"
    assert priced.splitlines()[1].endswith("EUR")


def test_an_earlier_job_gives_curves(files: list[str], store: Store, tmp_path: Path) -> None:
    keep(store, "before", recorded(diverged=5))
    asked = [*files[:1], "--seeds", "2", "--gangs", "2", "--json"]
    of_job = json.loads(hpo("simulate", *asked, "--curves", "job:before"))
    path = write(recorded(diverged=5), tmp_path / "same.csv")
    of_file = json.loads(hpo("simulate", *asked, "--curves", str(path)))
    assert of_job["rows"][0]["regrets"] == of_file["rows"][0]["regrets"]
    assert of_job["rows"][0]["worker_seconds"] == pytest.approx(of_file["rows"][0]["worker_seconds"])
    mentions(of_job["notes"][0], 60, "job before")


def test_an_earlier_job_without_a_curve_is_said_in_one_line(files: list[str], store: Store) -> None:
    lost = [replace(curve, values=[], seconds=[0.0]) for curve in recorded(3)]
    keep(store, "silent", lost)
    keep(store, "failed", lost, status="Failed")
    asked = ["simulate", *files[:1], "--curves"]
    for name, names in {
        "job:silent": ("'silent'", "Completed", "validation:auc"),
        "job:failed": ("'failed'", "ValueError: no luck"),
        "job:filed": ("'filed'", store.url),
    }.items():
        found = hpo(*asked, name, code=2)
        mentions(found, *names)
        assert "\n" not in found.rstrip()


@pytest.mark.parametrize("kind", ["IdenticalDataAndAlgorithm", "TransferLearning"])
def test_a_warm_start_is_simulated(kind: str, files: list[str], store: Store) -> None:
    """A model that knows the table's other curves from the start needs no search to find a good one."""
    keep(store, "before", recorded())
    asked = ["--seeds", "2", "--max-jobs", "2", "--strategy", "Bayesian", "--strategy", "Random", "--json"]
    cold = json.loads(hpo("simulate", *files, *asked))["rows"]
    warm_start = f"tuning.warm_start={{type: {kind}, parents: [before]}}"
    warm = json.loads(hpo("simulate", *files, *asked, "--set", warm_start))["rows"]
    assert warm[0]["regret"] < 0.1 < cold[0]["regret"]
    assert warm[1] == cold[1], "Random learns nothing"


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (["--gangs", "1,none"], ("--gangs", "'1,none'", 1)),
        (["--set", "tuning.repeats=3", "--max-jobs", "10"], ("max_jobs", 10, "repeats", 3)),
        (["--max-jobs", "0"], ("--max-jobs", "'0'", 1)),
        (["--strategy", "Randon"], ("strategy", "Randon", "Random")),
        (["--strategy", "shop:Halves"], ("shop:Halves", "--allow-code")),
        (["--set", "tuning.hyperband.max_resource=10"], (10, 9, "curves.csv")),
        (["--set", "tuning.ranges.gamma={type: continuous, min: 0, max: 1}"], ("curves.csv", "column", "gamma")),
        (["--curves", "job:none"], ("'none'",)),
        (["--set", "tuning.warm_start={type: TransferLearning, parents: [gone]}"], ("'gone'",)),
    ],
)
def test_a_mistake_is_said_in_one_line(asked: list[str], names: tuple[object, ...], files: list[str]) -> None:
    mentions(hpo("simulate", *files, *asked, code=2), *names)
