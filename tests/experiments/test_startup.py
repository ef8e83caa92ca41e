"""What the start-up benchmark makes of its measurements; no Ray, no training."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from experiments.benchmark import Target
from experiments.documented import Documented
from experiments.one_process import OneProcess, Run
from experiments.startup import WarmGangs, WarmJob, parameters, result, show, targets
from hpo.store import TrialRow

DOCUMENTED = Documented(at_once=2, starts=[20.0, 9.0, 8.0, 10.0], job=204.0, ray=4.0, objectives=[0.7, 0.75, 0.6, 0.7])
GANGS = WarmGangs(
    first_step={"ray.init": 3.0, "worker processes": 4.0},
    ups=[7.0, 9.0],
    starts=[0.01, 0.02, 0.03],
    added=[0.01, 0.02, 0.06],
    closing=1.0,
)
JOB = WarmJob(gangs=1, first_step=8.0, closing=2.0, job=9.0, objectives=[0.7, 0.75, 0.6, 0.7])
RUN = Run(seconds=1.0, rounds=300, best=0.78)
ONE = OneProcess(threads=2, here=[RUN], optuna={"QuantileDMatrix": [RUN], "DMatrix": [RUN]})


def measured(
    documented: Documented = DOCUMENTED, gangs: WarmGangs = GANGS, job: WarmJob = JOB, one: OneProcess = ONE
) -> list[Target]:
    return targets(documented, gangs, job, one)


def test_targets_are_medians_and_the_slower_of_two():
    starts, job, first, closing, added, one = measured()
    assert starts.measured == pytest.approx(9.0 / 0.02)
    assert job.measured == pytest.approx(204.0 / 9.0)
    assert (first.measured, closing.measured, added.measured) == (8.0, 2.0, 0.02)
    assert one.measured == pytest.approx(1.0)
    assert all(target.kept for target in measured())


@pytest.mark.parametrize(
    ("index", "worse"),
    [
        (0, {"gangs": replace(GANGS, starts=[0.05])}),
        (1, {"job": replace(JOB, job=11.0)}),
        (2, {"job": replace(JOB, first_step=12.1)}),
        (2, {"gangs": replace(GANGS, first_step={"ray.init": 12.1})}),
        (3, {"gangs": replace(GANGS, closing=3.1)}),
        (4, {"gangs": replace(GANGS, added=[0.031])}),
        (5, {"one": replace(ONE, here=[replace(RUN, seconds=1.51)])}),
    ],
)
def test_a_missed_target_is_said_to_be_missed(index: int, worse: dict):
    assert [target.kept for target in measured(**worse)] == [other != index for other in range(6)]
    assert "missed" in printed(**{"documented": DOCUMENTED, "gangs": GANGS, "job": JOB, "one": ONE} | worse)


def test_a_shorter_baseline_is_scaled_and_says_so():
    shorter = replace(DOCUMENTED, job=104.0, starts=[20.0, 9.0], objectives=[0.7, 0.75])
    target = measured(shorter)[1]
    assert target.measured == pytest.approx((4.0 + 100.0 * 2) / 9.0)
    assert "scaled from 2 trials" in target.note
    assert "scaled from 2 trials" in printed(shorter, GANGS, JOB, ONE)
    assert "scaled" not in printed(DOCUMENTED, GANGS, JOB, ONE)


def test_the_result_is_json_with_every_figure():
    made = json.loads(json.dumps(result(DOCUMENTED, GANGS, JOB, ONE, {"name": "bank-marketing", "synthetic": False})))
    assert made["as_ray_documents_it"]["starts"] == DOCUMENTED.starts
    assert made["warm_gangs"]["added"] == GANGS.added
    assert made["warm_job"]["job"] == JOB.job
    assert made["largest_difference_of_auc"] == 0.0
    assert [target["kept"] for target in made["targets"]] == [True] * 6


def test_another_auc_shows():
    made = result(DOCUMENTED, GANGS, replace(JOB, objectives=[0.7, 0.75, 0.6, 0.8]), ONE, {})
    assert made["largest_difference_of_auc"] == pytest.approx(0.1)


def test_both_give_xgboost_the_same_parameters():
    trial = TrialRow(job="startup", trial_id="startup-003", number=3, hyperparameters={"eta": 0.1})
    other = replace(trial, number=4)
    assert parameters(trial) == parameters(trial) != parameters(other)
    assert parameters(trial).items() >= {"eta": 0.1, "eval_metric": "auc", "nthread": 1}.items()


def printed(documented: Documented, gangs: WarmGangs, job: WarmJob, one: OneProcess) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(show(documented, gangs, job, one, "title"))
    return console.file.getvalue()
