"""Updates as units of resource: reports every few of them, over the ends of passes and through pauses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.support.allreduce import program
from tests.support.loaders import NUMBERS
from tests.support.networks import assignment, servers, state
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.steps import HERE, train
from trainers import ParameterServerTrainer, TorchTrainer
from trainers.errors import ConfigurationError, TrialError
from trainers.registry import unit_in


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
