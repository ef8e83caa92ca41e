"""What the benchmark of PyTorch on gangs makes of its measurements, and that both of its loops are one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig
from rich.console import Console

from experiments.baselines.pytorch.by_turns import Case, Turns
from experiments.baselines.training_loops import NETWORKS, TRAIN, layers, plain
from experiments.networks.recipe import parts
from experiments.torch_throughput import QUICK, Measured, networks, page_tables, result, show, targets
from experiments.workloads.repeated_trial import RepeatedTrial
from tests.support.refusals import mentions
from trainers import TorchTrainer
from trainers.channels import open_channels
from trainers.datasets import load

MEASURED = Measured(
    workers=2,
    rows="MNIST, 50,000 rows",
    throughput=Turns(what="2 workers", samples=1000, here=[1.0, 2.0, 4.0], plain=[1.0, 2.2, 3.0], difference=0.0),
    starts=[0.01, 0.02, 0.03],
    documented=[3.0, 2.0, 4.0],
)
NETWORK = Turns(
    name="GPT, DDP",
    what="2 workers, batch 4 each",
    samples=10,
    here=[2.0, 2.0],
    plain=[1.0, 2.0],
    difference=0.00012,
    processor=(0.5, 0.75),
)
GPU = Turns(what="784-10, batch 8, bf16", samples=1000, here=[0.5, 0.5], plain=[0.25, 0.5])


def printed(measured: Measured) -> str:
    console = Console(file=StringIO(), width=300)
    console.print(show(measured))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_speeds_are_compared_turn_by_turn_and_starts_by_medians() -> None:
    speed, start = targets(MEASURED)
    assert speed.measured == pytest.approx(1.0)
    assert start.measured == pytest.approx(150)
    assert speed.kept
    assert start.kept
    slower = replace(MEASURED.throughput, plain=[0.9, 1.9, 4.0])
    assert not targets(replace(MEASURED, throughput=slower))[0].kept
    assert not targets(replace(MEASURED, documented=[1.9]))[1].kept


def test_the_result_is_json_and_the_tables_show_it() -> None:
    made = json.loads(json.dumps(result(MEASURED)))
    assert made["throughput"]["here"] == [1.0, 2.0, 4.0]
    assert [target["kept"] for target in made["targets"]] == [True, True]
    assert "500" in printed(MEASURED)
    assert "none here" in printed(MEASURED)
    on_gpu = printed(replace(MEASURED, gpu=[GPU], device="a GPU of its own"))
    assert "a GPU of its own" in on_gpu
    assert "0.750" in on_gpu
    assert "none here" not in on_gpu


def test_other_networks_have_promises_and_a_table_of_their_own() -> None:
    with_network = replace(MEASURED, networks=[NETWORK])
    assert [(target.limit, target.measured, target.kept) for target in targets(with_network)[1:2]] == [
        (0.98, pytest.approx(0.75), False)
    ]
    assert "GPT, DDP: 2 workers" in printed(with_network)
    made = page_tables(json.loads(json.dumps(result(with_network))))
    assert made["networks"].splitlines()[2] == (
        "| GPT, DDP: 2 workers, batch 4 each | 5.00 | 6.67 | 0.750 | quartiles of 2 turns: 0.375, 0.750, 1.125 | "
        "0.0001 | 0.50 here, 0.75 under torchrun |"
    )


def test_the_pages_tables_are_made_of_the_result() -> None:
    made = page_tables(json.loads(json.dumps(result(MEASURED))))
    assert made.keys() == {"trained", "speeds", "starts", "promises"}
    mentions(made["trained"], "MNIST", "50,000 rows", "128-64-10", "2 workers", "Weights", 0)
    assert made["speeds"].splitlines()[2:] == ["| here | 500 | 250 | 1,000 |", "| torchrun | 455 | 333 | 1,000 |"]
    assert made["starts"].splitlines()[3] == "| Ray Train | 3.0000 | 2.0000 | 4.0000 | 3 |"
    on_gpu = page_tables(json.loads(json.dumps(result(replace(MEASURED, gpu=[GPU], device="a GPU")))))["gpu"]
    assert on_gpu.splitlines()[2].startswith("| 784-10, batch 8, bf16 | 2,000 | 2,667 | 0.750 |")


ROWS = np.random.default_rng(3).normal(size=(90, 6)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.float32)
TRIAL = {"lr": 0.1, "momentum": 0.9, "shuffle": False, "widths": [6, 4, 2], "per_worker_batch_size": 10}


def test_both_loops_train_the_same_model(tmp_path: Path) -> None:
    torch.manual_seed(5)
    model = layers(TRIAL["widths"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    rows, labels = torch.from_numpy(ROWS), torch.from_numpy(LABELS).long()
    loss = plain(model, optimizer, rows, labels, batch=10, epochs=3, shuffle=False)

    trainer = TorchTrainer(TRAIN, scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}))
    with trainer.gangs("here", open_channels({"train": (ROWS, LABELS)})) as gangs:
        gang = RepeatedTrial(gangs, TRIAL, 3, str(tmp_path), seed=5)
        gang.start()
        turns = [gang.train() for _ in range(2)]
    for turn in turns:
        state = trainer.load_model(turn.segment.checkpoint)["model"]
        assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
        assert turn.segment.reports[-1].metrics["train:loss"] == pytest.approx(loss)
        assert 0 < turn.starting < turn.seconds


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As a gang of one CPU has it: sums over more threads end in other bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("case", networks(load("digits"), QUICK)[::2], ids=lambda case: case.name)
def test_both_loops_train_the_other_networks(case: Case, one_thread: None, tmp_path: Path) -> None:
    features, labels = (array[:12] for array in case.rows)
    trial = {**case.hyperparameters, "shuffle": False}
    network = NETWORKS[trial["network"]]
    torch.manual_seed(5)
    model = network.model(trial)
    rows, targets_ = torch.from_numpy(features), torch.from_numpy(labels).long()
    plain(model, network.optimizer(model, trial), rows, targets_, batch=4, epochs=1, shuffle=False, text=network.text)
    trainer = TorchTrainer(TRAIN, scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}))
    with trainer.gangs("here", open_channels({"train": (features, labels)})) as gangs:
        gang = RepeatedTrial(gangs, {**trial, "per_worker_batch_size": 4}, 1, str(tmp_path), seed=5)
        gang.start()
        state = trainer.load_model(gang.train().segment.checkpoint)["model"]
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    inputs, _ = parts(rows, targets_, text=network.text)
    assert model(inputs).shape[0] == 12


def test_shuffled_rows_are_all_trained_on() -> None:
    seen = []

    class Noting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = layers([6, 2])

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            seen.append(features)
            return self.inner(features)

    model = Noting()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain(model, optimizer, torch.from_numpy(ROWS), torch.from_numpy(LABELS).long(), batch=40, epochs=1)
    assert [len(batch) for batch in seen] == [40, 40, 10]
    found = torch.cat(seen).numpy()
    assert not np.array_equal(found, ROWS)
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(ROWS, axis=0))
