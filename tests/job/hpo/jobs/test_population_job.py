"""Population based training as a job: what is tried, recorded, kept and resumed."""

from __future__ import annotations

import re
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import xgboost
from ray.train import ScalingConfig
from ray.tune.schedulers import PopulationBasedTraining
from torch import nn
from torch.nn import functional
from typer.testing import CliRunner

from hpo import CategoricalParameter, ContinuousParameter, HyperparameterTuner, IntegerParameter, cli
from hpo.ranges import present
from hpo.record.store import Store
from hpo.report.data import JobData
from hpo.report.pictures.lineage import parents_and_forks
from tests.support.driving import CHANNELS, Counting, answer
from tests.support.hpo.jobs.population_job import (
    fitted,
    parents,
    rows,
    whole,  # noqa: F401  # A fixture.
)
from tests.support.population_job import RANGES, tuner
from tests.support.refusals import mentions, refuses
from tests.support.resuming import DIGITS
from trainers import ConfigurationError, TorchTrainer, TrainContext, Trainer, XGBoostTrainer, storage
from trainers.xgboost.booster import load_booster


def test_forks_have_parents_and_stay_within_their_ranges(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, found = whole
    assert found["status"] == ("Completed", "")
    trials = rows(folder)
    forks = [row for row in trials.values() if row.parent]
    assert len(forks) == 6  # Two of six at rounds 2, 4 and 6.
    for row in forks:
        assert trials[row.replaces].resource == row.parent_resource < row.resource
        assert trials[row.replaces].status == "Stopped"
        assert all(RANGES[name].is_valid(value) for name, value in row.hyperparameters.items())
        assert row.hyperparameters["booster"] == trials[row.parent].hyperparameters["booster"]
        steps = [step for trial, step in found["reports"] if trial == row.trial_id.removeprefix("job")]
        assert sorted(steps) == list(range(row.parent_resource + 1, row.resource + 1))
    assert found["used"] == 6 * 8


def test_a_forks_model_is_its_parents_trained_on(whole: tuple[Path, dict[str, Any]]) -> None:
    """Its first trees are the parent's, to the last bit."""
    folder, _ = whole
    trials = rows(folder)
    fork = next(row for row in trials.values() if row.parent and row.resource == 8)
    parent = trials[fork.parent]
    first, second = (load_booster(row.checkpoint, {}) for row in (parent, fork))
    shared = fork.parent_resource
    assert second.num_boosted_rounds() == 8
    assert first[:shared].get_dump() == second[:shared].get_dump()
    assert parent.resource == shared or first[shared : shared + 1].get_dump() != second[shared : shared + 1].get_dump()


@pytest.mark.parametrize("at", [13, 20, 30, 41])
def test_stopped_anywhere_and_resumed_it_gives_the_same_answer(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, at: int
) -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        tuner(tmp_path, (Counting(at, interrupt),), num_to_keep=None).fit(CHANNELS, job_name="job")
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").resume()
    assert {**answer(tmp_path, "job"), "parents": parents(tmp_path)} == whole[1]


@pytest.mark.parametrize("at", [17, 37])
def test_without_synch_a_resumed_job_goes_on_as_it_had_decided(tmp_path: Path, at: int) -> None:
    """In one process trials come in one order, so that the undisturbed answer is known, too."""
    loose = {"scheduler": (PopulationBasedTraining, {"perturbation_interval": 2, "synch": False}), "num_to_keep": None}

    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    (tmp_path / "whole").mkdir()
    undisturbed = fitted(tmp_path / "whole", **loose)
    with pytest.raises(KeyboardInterrupt):
        tuner(tmp_path, (Counting(at, interrupt),), **loose).fit(CHANNELS, job_name="job")
    before = rows(tmp_path)
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").resume()
    after = rows(tmp_path)
    assert [(row.parent, row.replaces) for row in before.values() if row.parent] == [
        (after[name].parent, after[name].replaces) for name, row in before.items() if row.parent
    ]
    assert {**answer(tmp_path, "job"), "parents": parents(tmp_path)} == undisturbed


def test_checkpoints_that_are_lost_are_trained_again_through_all_ancestors(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        tuner(tmp_path, (Counting(35, interrupt),), num_to_keep=None).fit(CHANNELS, job_name="job")
    for row in rows(tmp_path).values():
        shutil.rmtree(tmp_path / "job" / row.trial_id, ignore_errors=True)
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").resume()
    found = {**answer(tmp_path, "job"), "parents": parents(tmp_path)}
    assert {**found, "kept": None} == {**whole[1], "kept": None}  # Those that had ended are gone.


def test_a_job_that_keeps_the_best_leaves_their_files_alone(tmp_path: Path) -> None:
    fitted(tmp_path, num_to_keep=1)
    kept = [row for row in rows(tmp_path).values() if row.checkpoint]
    assert len(kept) == 1
    assert sorted(path.name for path in (tmp_path / "job").glob("job-*")) == [kept[0].trial_id]
    assert storage.read(kept[0].checkpoint)


def test_the_page_and_the_commands_tell_the_parents(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = whole
    fork = next(row for row in rows(folder).values() if row.parent)
    store = f"sqlite:///{folder}/record.db"
    with Store(store) as opened:
        data = JobData.read(opened, "job")
    assert (data.used, data.possible) == (48, 48)
    figure = parents_and_forks(data)
    assert figure is not None
    mentions(figure.title, "6", "checkpoint")
    printed = (
        CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(cli.app, ["trials", "job", "--store", store]).output
    )
    (row,) = [line for line in printed.splitlines() if line.startswith(fork.trial_id)]
    assert re.search(rf"{fork.parent}\D+{fork.parent_resource}\b", row), printed


def test_the_list_counts_its_forks_and_no_trial_is_added_to_it(whole: tuple[Path, dict[str, Any]]) -> None:
    store = f"sqlite:///{whole[0]}/record.db"
    invoke = partial(CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke, cli.app)
    assert " 12/12 " in invoke(["jobs", "--store", store]).output
    refused = invoke(["trials", "add", "job", "--set", "eta=0.5", "--store", store])
    mentions(str(refused.exception), "job", "Completed", "population", "checkpoints")
    assert "hpo resume" not in str(refused.exception)


def test_forks_have_a_conditional_hyperparameter_where_its_condition_is_met(tmp_path: Path) -> None:
    conditional = {
        **RANGES,
        "max_leaves": IntegerParameter(2, 20, when={"grow_policy": ["lossguide"]}),
        "tree_method": CategoricalParameter(["hist", "approx"], when={"grow_policy": ["lossguide"]}),
    }
    found = fitted(tmp_path, ranges=conditional, points_to_evaluate=[{"grow_policy": "lossguide", "max_leaves": 4}])
    assert found["status"] == ("Completed", "")
    trials = rows(tmp_path).values()
    assert any(row.parent for row in trials)
    for row in trials:
        assert list(row.hyperparameters) == present(conditional, row.hyperparameters)


def test_a_population_does_not_grow_once_it_has_exchanged_checkpoints(tmp_path: Path) -> None:
    fitted(tmp_path)
    made = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db")
    with refuses(ConfigurationError, field=("max_jobs", "population", "job"), value=9):
        made.resume(max_jobs=9)


def train(context: TrainContext) -> None:
    words = context.hyperparameters
    model = context.prepare_model(nn.Sequential(nn.Linear(64, words.get("width", 16)), nn.ReLU(), nn.LazyLinear(10)))
    model(torch.zeros(1, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=words["lr"], momentum=0.9)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
        for group in optimizer.param_groups:
            group["lr"] = words["lr"]  # The checkpoint has its parent's.
    batches = context.prepare_data("train", labels=torch.int64)
    validation = context.shard("validation", labels=torch.int64)
    for _ in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        with torch.no_grad():
            right = (model(validation.features).argmax(1) == validation.labels).float().mean().item()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({"validation:accuracy": right, "validation:lr": optimizer.param_groups[0]["lr"]}, state)


def network(**hyperparameters: Any) -> Trainer:
    return TorchTrainer(
        train,
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
        hyperparameters={"per_worker_batch_size": 128, "epochs": 4, **hyperparameters},
    )


LR = {"lr": ContinuousParameter(0.001, 0.5, "Logarithmic")}


def of_networks(folder: Path, **options: Any) -> dict[str, Any]:
    more = {"metric": "validation:accuracy", "ranges": LR, "max_jobs": 4, "trainer": network(), **options}
    return fitted(folder, DIGITS, **{**more, "scheduler": (PopulationBasedTraining, {"perturbation_interval": 1})})


def test_networks_go_on_with_other_learning_rates_and_alike_on_resume(tmp_path: Path) -> None:
    found = of_networks(tmp_path)
    trials = rows(tmp_path)
    forks = [row for row in trials.values() if row.parent]
    assert forks
    for row in forks:
        used = {m["validation:lr"] for (name, _), m in found["reports"].items() if row.trial_id == f"job{name}"}
        assert used == {row.hyperparameters["lr"]}


def test_a_network_that_does_not_take_its_parents_checkpoint_says_whose_it_is(tmp_path: Path) -> None:
    of_networks(tmp_path, ranges={**LR, "width": CategoricalParameter([8, 16, 32])})
    failed = [row for row in rows(tmp_path).values() if row.status == "Failed"]
    assert failed
    mentions(failed[0].failure_reason, "checkpoint", failed[0].parent)


def test_by_the_best_value_each_trial_s_model_is_of_a_round_of_its_own(tmp_path: Path) -> None:
    """A parent's best round may be better than any of its fork's, which did not train it."""
    loss = "validation:logloss"
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0),
        hyperparameters={"objective": "binary:logistic", "eval_metric": "logloss", "num_round": 12},
    )
    made = tuner(
        tmp_path, trainer=trainer, metric=loss, objective_type="Minimize", objective_value="best", num_to_keep=None
    )
    made.fit(CHANNELS, job_name="job")
    trials = rows(tmp_path)
    rows_of = CHANNELS["validation"]
    matrix = xgboost.DMatrix(rows_of.drop(columns="y"), rows_of["y"])
    for name, row in trials.items():
        model = made.best_estimator(name).model()
        model.set_param({"eval_metric": "logloss"})
        assert float(model.eval(matrix).rpartition(":")[2]) == pytest.approx(row.best_objective, rel=1e-5), name
    forks = [row for row in trials.values() if row.parent and trials[row.parent].best_resource <= row.parent_resource]
    assert any(trials[row.parent].best_objective < row.best_objective for row in forks), "the test is of nothing"
