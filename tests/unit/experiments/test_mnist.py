"""What the image model's script makes of its measurements, and short runs of it in this process; no Ray."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from experiments import mnist
from experiments.mnist import (
    Outcome,
    near_chance,
    observation,
    result,
    settings,
    show,
    targets,
)
from experiments.shared import network_tuning
from experiments.shared.benchmark import write
from experiments.shared.network import Setting, network
from experiments.shared.network_tuning import Tuned
from tests.support.refusals import mentions, missing_names
from trainers.datasets import Dataset, load


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def outcome(accuracy: float, setting: Setting, **details) -> Outcome:
    return Outcome(
        setting=setting, diverged=False, seconds=1.0, accuracy=accuracy, curve=[0.5, accuracy], details=details
    )


OUTCOMES = [
    outcome(accuracy, setting)
    for accuracy, setting in zip([0.98, 0.11, 0.96, 0.95, 0.97], settings(4, 20), strict=True)
]
TUNED = Tuned(
    job="learning",
    trials={"Completed": 3, "Stopped": 14},
    epochs=78,
    best={"lr": 0.0123456, "mode": "async"},
    accuracy=0.975,
    validation=0.974,
    untuned=None,
    worker_seconds=400.0,
    untuned_worker_seconds=50.0,
    seconds=120.0,
)


def printed(shown) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(shown)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_network_is_the_published_one() -> None:
    shapes = [tuple(parameter.shape) for parameter in network(784).parameters()]
    assert shapes == [(128, 784), (128,), (64, 128), (64,), (10, 64), (10,)]


def test_settings_change_nothing_but_what_they_say() -> None:
    alone, asynchronous, reduced, linear, warm = settings(4, 20)
    given = [setting.trainer(20).hyperparameters for setting in (alone, asynchronous, reduced, linear, warm)]
    blog = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 100, "epochs": 20}
    assert given[0] == given[2] == blog
    assert given[1] == blog | {"mode": "async", "num_workers": 4}
    assert given[3] == blog | {"learning_rate_rule": "linear"}
    assert given[4] == given[3] | {"warmup_epochs": 5}
    assert [setting.trainer(20).workers for setting in settings(4, 20)] == [1, 4, 4, 4, 4]


def test_one_worker_is_promised_and_the_asynchronous_ones_are_observed(digits: Dataset) -> None:
    [promise] = targets(OUTCOMES, "mnist")
    assert promise.kept
    assert not targets([outcome(0.9699, OUTCOMES[0].setting), *OUTCOMES[1:]], "mnist")[0].kept
    assert targets(OUTCOMES, "digits") == []
    said = mentions(observation(OUTCOMES), "0.9800", "0.1100", "near chance")
    assert missing_names(said, "not near")
    better = [OUTCOMES[0], outcome(0.21, OUTCOMES[1].setting)]
    mentions(observation(better), "0.9800", "0.2100", "not near")
    diverged = Outcome(setting=OUTCOMES[1].setting, diverged=True, seconds=1.0)
    assert near_chance(diverged)
    mentions(observation([OUTCOMES[0], diverged]), "0.9800", "diverged", "near chance")
    assert "diverged" in printed(show([OUTCOMES[0], diverged], digits))


def test_the_result_is_json_and_the_tables_show_it(digits: Dataset) -> None:
    dataset = replace(digits, name="mnist")
    made = json.loads(json.dumps(result(OUTCOMES, dataset)))
    assert made["asynchronous_near_chance"]
    assert [each["accuracy"] for each in made["outcomes"]] == [0.98, 0.11, 0.96, 0.95, 0.97]
    assert made["targets"][0]["kept"]
    assert "0.9800" in printed(show(OUTCOMES, dataset))
    assert "Promises" not in printed(show(OUTCOMES, digits))


def test_tables_of_a_document_are_made_of_a_result_alone(digits: Dataset, tmp_path: Path) -> None:
    stale = outcome(0.11, OUTCOMES[1].setting, parameter_server={"staleness": {"2": 1, "3": 1}})
    diverged = Outcome(setting=OUTCOMES[2].setting, diverged=True, seconds=1.0)
    made = result([replace(OUTCOMES[0], worker_seconds=27.4), stale, diverged], replace(digits, name="mnist"))
    tables = mnist.page_tables(json.loads(write(tmp_path, made).read_text()))
    assert tables["accuracy"].splitlines()[2:] == [
        "| one worker | 1 | 0.9800 | 0.9800 | 0.0 | 27 |",
        "| asynchronous server | 4 | 0.1100 | 0.5000 | 2.5 | |",
        "| AllReduce | 4 | diverged | | 0.0 | |",
    ]
    mentions(tables["short"], "0.980", "one worker", "0.110", "4 asynchronous")
    [promise] = tables["promises"].splitlines()[2:]
    mentions(promise, "test accuracy", "one worker", "| at least 0.97 | 0.98 | kept | 2 epochs |")
    tuned = mnist.page_tables(json.loads(write(tmp_path, network_tuning.result([TUNED], digits)).read_text()))
    before, after = tuned["tuned"].splitlines()[2:]
    mentions(before, "un-tuned", "diverged", "| | 50 | |")
    mentions(after, "tuned", "lr 0.01235", "mode async", "| 0.9750 | 78 |", 400, "| 120 |")
    mentions(tuned["short"], "0.9750", "tuned")


def test_staleness_is_the_mean_over_pushes() -> None:
    assert outcome(0.9, OUTCOMES[1].setting, parameter_server={"staleness": {"0": 1, "3": 3}}).staleness == 2.25
    assert OUTCOMES[0].staleness == 0


def test_what_is_reported_is_what_the_model_scores(digits: Dataset, tmp_path: Path) -> None:
    trained = settings(4, 2)[0].trainer(2, in_hand=True).fit(mnist.channels(digits), storage_path=str(tmp_path), seed=1)
    model = network(64)
    model.load_state_dict(trained.model()["model"])
    for channel, (features, labels) in {"test": digits.test, "validation": digits.validation}.items():
        with torch.no_grad():
            outputs = model(torch.from_numpy(features))
        accuracy = float((outputs.argmax(1).numpy() == labels).mean())
        loss = float(torch.nn.functional.cross_entropy(outputs, torch.from_numpy(labels).long()))
        assert trained.metrics[f"{channel}:accuracy"] == pytest.approx(accuracy, abs=1e-12)
        assert trained.metrics[f"{channel}:loss"] == pytest.approx(loss, rel=1e-5)


def test_tuning_is_promised_and_shows_its_cost(digits: Dataset) -> None:
    [promise] = network_tuning.targets([TUNED], "mnist")
    assert promise.kept
    mentions(promise.note, "un-tuned", "diverged", "400 worker-seconds")
    assert not network_tuning.targets([replace(TUNED, accuracy=0.969, untuned=0.1135)], "mnist")[0].kept
    shown = printed(network_tuning.show([TUNED], replace(digits, name="mnist")))
    for part in ("0.9750", "400", "3 completed, 14 stopped", "lr=0.01235, mode=async", "kept"):
        assert part in shown
    made = json.loads(json.dumps(network_tuning.result([TUNED], digits)))
    assert made["tuned"][0]["untuned"] is None
    assert made["targets"] == []
