"""Updates as units of resource: reports every few of them, over the ends of passes and through pauses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from tests.support.allreduce import only, only_errors, program
from tests.support.loaders import NUMBERS
from tests.support.networks import assignment, close, data, servers, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions, refuses
from trainers import ParameterServerTrainer, TorchTrainer
from trainers.channels import Channel
from trainers.errors import ConfigurationError, TrialError
from trainers.registry import unit_in

HERE = ScalingConfig(num_workers=0)


def train(context) -> None:
    """Dropout and shuffled rows, a schedule over steps, an evaluation at each report; rows of every update are told."""
    words = context.hyperparameters
    model = context.prepare_model(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=words.get("total", 60))
    batches = context.prepare_data("train", labels=torch.int64)
    evaluated = context.prepare_data("train", shuffle=False, labels=torch.int64)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    rates, right = [], 0
    if context.checkpoint is not None:
        for name, part in parts.items():
            part.load_state_dict(context.checkpoint[name])
        rates = [*context.checkpoint["rates"]]
    for _ in context.epochs():
        model.train()
        for features, labels in context.steps(batches):
            rates.append(optimizer.param_groups[0]["lr"])
            if context.step(functional.cross_entropy(model(features), labels), optimizer):
                scheduler.step()
        model.eval()
        with torch.no_grad():
            right = sum(int((model(rows).argmax(1) == labels).sum()) for rows, labels in evaluated)
        found = {name: part.state_dict() for name, part in parts.items()}
        context.report({"train:right": float(context.sum(float(right)))}, checkpoint={**found, "rates": rates})


@pytest.mark.process
@pytest.mark.parametrize("accumulation", [1, 3])
def test_a_pause_in_the_middle_of_a_pass_changes_no_bit(gang: ProcessGang, tmp_path, accumulation):
    """Nine batches a pass on each of three workers, of which the last is smaller: five updates are not a pass."""
    words = {"per_worker_batch_size": 4, "gradient_accumulation_steps": accumulation}
    made = program(train, 101, steps_per_report=5)
    [[whole], *_] = gang.run(made, assignment(tmp_path, 0, 7, "whole", **words))
    for start, stop in ((0, 1), (1, 4), (4, 7)):
        [[parts], *_] = gang.run(made, assignment(tmp_path, start, stop, "parts", **words))
    one, other = state(whole), state(parts)
    close(one["model"], other["model"], 0.0)
    assert one["rates"] == other["rates"]
    assert one["scheduler"]["last_epoch"] == 35
    assert whole.reports[-1] == parts.reports[-1]
    assert [report.step for report in whole.reports] == [*range(1, 8)]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_parameter_servers_go_on_in_the_middle_of_a_pass(tmp_path, mode):
    words = {"per_worker_batch_size": 4, "num_workers": 2, "mode": mode, "total": 200}
    trainer = ParameterServerTrainer(train, scaling=HERE, steps_per_report=5)
    channel = {"train": Channel.of(data(101), name="train").place(0)}

    def served(*trials):
        return [state(segment) for segment in serve_alone(trainer.program(channel), *trials)]

    [whole] = served(assignment(tmp_path, 0, 5, "whole", **words))
    *_, parts = served(*(assignment(tmp_path, at, at + 1, "parts", **words) for at in range(5)))
    assert whole["rates"] == parts["rates"]
    close(whole["model"], parts["model"], 0.0)


def test_a_loaders_passes_end_where_they_end(tmp_path):
    def rows(context) -> None:
        batches = context.prepare_data(DataLoader(NUMBERS, batch_size=30, shuffle=True))
        came = [*context.checkpoint["came"]] if context.checkpoint else []
        for _ in context.epochs():
            came.append([len(numbers) for numbers, _ in context.steps(batches)])
            context.report({}, checkpoint={"came": came})

    make = program(rows, steps_per_report=3)
    *_, last = serve_alone(make(), *(assignment(tmp_path, at, at + 1) for at in range(4)))
    assert state(last)["came"] == [[30, 30, 30], [10, 30, 30], [30, 10, 30], [30, 30, 10]]


def test_warm_up_counts_passes_where_units_are_updates(tmp_path):
    def rates(context) -> None:
        model = context.prepare_model(nn.Linear(1, 1, bias=False))
        nn.init.zeros_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = context.prepare_data("train")
        weights = []
        for _ in context.epochs():
            for _ in context.steps(batches):
                context.step(-model(torch.ones(1, 1)).mean(), optimizer)
                weights.append(model.weight.item())
            context.report({}, checkpoint={"weights": weights})

    words = {"per_worker_batch_size": 24, "gradient_accumulation_steps": 2, "learning_rate_rule": "linear"}
    [found] = serve_alone(program(rates, steps_per_report=1)(), assignment(tmp_path, 0, 6, **words, warmup_epochs=2))
    moved = np.diff([0.0, *state(found)["weights"][1::2]])
    np.testing.assert_allclose(moved, 0.1 * np.array([1.125, 1.375, 1.625, 1.875, 2, 2]), rtol=1e-5)


# ---- words


@pytest.mark.parametrize("trainer", [TorchTrainer, ParameterServerTrainer])
@pytest.mark.parametrize(("steps", "unit"), [(None, "epoch"), (1, "step"), (100, "report")])
def test_a_unit_has_its_word_in_the_trainer_and_in_records(trainer, steps, unit):
    options = {} if steps is None else {"steps_per_report": steps}
    made = trainer(train, scaling=HERE, hyperparameters={f"{unit}s": 7}, **options)
    assert (made.unit, made.resource_names, made.units) == (unit, (f"{unit}s",), 7)
    assert unit_in(made.to_json()) == unit
    assert made.with_hyperparameters({}).unit == unit


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, "10"])
def test_a_number_of_steps_that_is_none_is_refused(steps):
    with refuses(ConfigurationError, field="steps_per_report", value=repr(steps), remedy="1"):
        TorchTrainer(train, steps_per_report=steps)


def test_steps_without_the_trainers_word_are_refused(tmp_path):
    with refuses(TrialError, field="context.steps()", remedy="steps_per_report"):
        servers(train, assignment(tmp_path, per_worker_batch_size=8, num_workers=1))


def forgets(context) -> None:
    batches = context.prepare_data("train")
    for _ in context.epochs():
        for _ in context.steps(batches):
            pass


@pytest.mark.process
@pytest.mark.parametrize(("steps", "unit"), [(1, "step"), (2, "unit")])
def test_a_unit_without_a_report_is_told_in_its_word(gang: ProcessGang, tmp_path, steps, unit):
    made = program(forgets, steps_per_report=steps)
    errors = only_errors(gang.run(made, assignment(tmp_path, per_worker_batch_size=8)))
    mentions(str(errors[0]), f"{unit} 0", unit, "report()", "rank 0")
    only([[1]])
