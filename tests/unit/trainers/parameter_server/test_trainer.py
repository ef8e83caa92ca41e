"""The parameter-server trainer in one process: simulated workers, held against one worker and against AllReduce."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig
from torch import nn

from tests.support.networks import (
    HERE,
    assignment,
    close,
    data,
    network,
    run,
    servers,
    state,
    train_adam,
    train_exactly,
)
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, ParameterServerTrainer, TorchTrainer
from trainers.errors import DivergedError
from trainers.registry import trainer_from_json


@pytest.mark.parametrize("mode", ["async", "sync", "bounded", "ring"])
@pytest.mark.parametrize("function", [train_exactly, train_adam])
def test_one_worker_is_the_plain_optimizer_to_the_last_bit(tmp_path, mode, function):
    [one] = servers(function, assignment(tmp_path, name="servers", per_worker_batch_size=10, mode=mode))
    [plain] = run(TorchTrainer(function, scaling=HERE), assignment(tmp_path, name="plain", per_worker_batch_size=10))
    close(state(one)["model"], state(plain)["model"], 0.0)
    assert str(state(one).get("optimizer")) == str(state(plain).get("optimizer"))
    assert one.details["parameter_server"]["staleness"] == {"0": 20}


@pytest.mark.parametrize("rows", [96, 101])
@pytest.mark.parametrize("num_servers", [1, 3])
def test_synchronous_workers_are_one_worker_with_the_whole_batch(tmp_path, rows, num_servers):
    words = {"mode": "sync", "num_workers": 3, "num_servers": num_servers, "per_worker_batch_size": 4}
    [three] = servers(train_exactly, assignment(tmp_path, **words), rows=rows)
    [one] = run(
        TorchTrainer(train_exactly, scaling=HERE),
        assignment(tmp_path, name="one", per_worker_batch_size=12),
        rows=rows,
    )
    close(state(three)["model"], state(one)["model"])


def test_more_workers_than_tensors_are_told_so(tmp_path):
    with refuses(ConfigurationError, field=("5", "server_placement"), value="each", remedy="4"):
        servers(train_exactly, assignment(tmp_path, num_workers=5, per_worker_batch_size=4, server_placement="each"))


def test_servers_own_cpus_are_part_of_a_private_cluster():
    def cpus(**options):
        scaling, words = ScalingConfig(num_workers=4), options.pop("words", {})
        return ParameterServerTrainer(train_exactly, scaling=scaling, hyperparameters=words, **options).logical_cpus(2)

    assert cpus() == 8
    assert cpus(server_resources={"CPU": 1}) == 10
    assert cpus(server_resources={"CPU": 1}, words={"server_placement": "each"}) == 16
    assert cpus(server_resources={"CPU": 0.5}, words={"num_servers": 3}) == 11


def test_servers_resources_are_recorded():
    trainer = ParameterServerTrainer(train_exactly, scaling=HERE, server_resources={"CPU": 2, "disk": 0})
    again = trainer_from_json(trainer.to_json(), allow_code=True)
    assert again.server_resources == trainer.server_resources == {"CPU": 2.0}
    assert "server_resources" not in ParameterServerTrainer(train_exactly, scaling=HERE).to_json()["options"]


def test_resources_that_are_none_are_refused():
    wrong = (1, ["CPU"], {"CPU": -1}, {"CPU": "1"}, {"CPU": True}, {1: 1}, {"": 1})
    made = partial(ParameterServerTrainer, train_exactly, scaling=HERE)
    cases = [(partial(made, server_resources=it), ("server_resources", repr(it), "0", "{'CPU': 1}")) for it in wrong]
    refuses_each(cases, ConfigurationError)


def test_stale_gradients_ruin_what_one_worker_learns(tmp_path):
    def train(context) -> None:
        model = context.prepare_model(nn.Linear(1, 1, bias=False))
        nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in context.epochs():
            for _ in context.prepare_data("train"):
                context.step((model.weight**2).sum() * 2, optimizer)
            context.report({}, checkpoint={"weight": float(model.weight.detach())})

    one, four = servers(
        train,
        assignment(tmp_path, name="one", mode="async", per_worker_batch_size=2),
        assignment(tmp_path, name="four", mode="async", per_worker_batch_size=2, num_workers=4),
    )
    assert abs(state(one)["weight"]) < 0.01
    assert abs(state(four)["weight"]) > 100
    staleness = four.details["parameter_server"]["staleness"]
    assert max(staleness, key=staleness.get) == "3"


def test_bounded_workers_are_never_further_ahead(tmp_path):
    words = {"num_workers": 4, "per_worker_batch_size": 4, "delay_ms": [0, 0, 0, 20.0]}
    free, bounded = servers(
        train_adam,
        assignment(tmp_path, stop=1, name="free", mode="async", **words),
        assignment(tmp_path, stop=1, name="bounded", mode="bounded", staleness_bound=0, **words),
    )
    stale = [max(map(int, segment.details["parameter_server"]["staleness"])) for segment in (free, bounded)]
    assert stale[0] > stale[1]
    # With s = 0 all workers are in the same step, so that at most the three others were applied between.
    assert stale[1] <= 3


def test_divergence_is_told(tmp_path: Path):
    def train(context) -> None:
        model = context.prepare_model(network())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e200)
        for _ in context.epochs():
            for features, _ in context.prepare_data("train"):
                context.step(model(features.double()).pow(2).mean(), optimizer)
            context.report({}, checkpoint={})

    with pytest.raises(DivergedError):
        servers(train, assignment(tmp_path, num_workers=4, mode="async", per_worker_batch_size=2))


def test_what_cannot_be_right_is_refused_where_it_is_given():
    def made(hyperparameters):
        hyperparameters = {"epochs": 1, **hyperparameters}
        return ParameterServerTrainer(train_adam, scaling=ScalingConfig(num_workers=2), hyperparameters=hyperparameters)

    cases = [
        ({"mode": "asynch"}, ("mode", "asynch", "async")),
        ({"mode": "sync", "backup_workers": 2}, ("backup_workers", 2, "workers", 0, 1)),
        ({"num_servers": 0}, ("num_servers", 0, 1)),
        ({"staleness_bound": -1, "mode": "bounded"}, ("staleness_bound", -1, 0)),
        ({"delay_ms": [1.0]}, ("delay_ms", [1.0], 2)),
        ({"delay_ms": float("nan")}, ("delay_ms", "nan", 0)),
        ({"link_bytes_per_second": 0}, ("link_bytes_per_second", 0)),
    ]
    refuses_each([(partial(made, given), names) for given, names in cases], ConfigurationError)


def test_more_servers_than_parameters_are_refused(tmp_path):
    with refuses(ConfigurationError, field="num_servers", value=9, remedy="4"):
        servers(train_adam, assignment(tmp_path, num_servers=9, per_worker_batch_size=4))


def test_a_training_gives_its_details_and_model():
    trainer = ParameterServerTrainer(
        train_adam,
        scaling=HERE,
        hyperparameters={"epochs": 2, "num_workers": 3, "mode": "async", "per_worker_batch_size": 8, "delay_ms": 1.0},
    )
    features, labels = data()
    result = trainer.fit({"train": (features, labels)})
    assert len(result.curve) == 2
    assert result.details["parameter_server"]["pushes"] == 2 * 3 * 4
    assert "simulated" in result.details["parameter_server"]["delay"]
    assert np.isfinite(result.model()["model"]["0.weight"].numpy()).all()
