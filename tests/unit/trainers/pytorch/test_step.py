"""`context.step`: one model on all workers, whatever is stepped with, and the same answer in every mode."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.support.networks import assignment, close, network, servers, state
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.step import alone, clips, hooks, steps_itself, trains_an_adversary
from trainers.errors import ConfigurationError, TrialError


@pytest.mark.parametrize("workers", [1, 3])
def test_a_function_that_steps_itself_is_refused_on_parameter_servers(tmp_path, workers):
    with refuses(TrialError, field=("rank", "SGD.step()"), value=workers, remedy="context.step(loss, optimizer)"):
        servers(steps_itself, assignment(tmp_path, per_worker_batch_size=8, num_workers=workers))


def test_a_function_that_steps_itself_trains_on_one_worker(tmp_path):
    [segment] = alone(steps_itself, assignment(tmp_path, per_worker_batch_size=8))
    assert len(segment.reports) == 2
    torch.optim.SGD(network().parameters(), lr=0.1).step()  # Nothing looks at what others step with.


def test_two_optimizers_of_rows_that_nobody_counts_accumulate_each_by_itself(tmp_path):
    def train(context) -> None:
        one, other = (context.prepare_model(nn.Linear(1, 1, bias=False)) for _ in range(2))
        optimizers = [torch.optim.SGD(model.parameters(), lr=1.0) for model in (one, other)]
        for _ in context.epochs():
            updates = [
                [context.step(model(torch.ones(1, 1)).sum(), optimizer) for _ in range(2)]
                for model, optimizer in [(one, optimizers[0]), (other, optimizers[1])]
            ]
            alternating = [
                context.step(model(torch.ones(1, 1)).sum(), optimizer)
                for _ in range(2)
                for model, optimizer in [(one, optimizers[0]), (other, optimizers[1])]
            ]
            context.report({}, checkpoint={"updates": updates, "alternating": alternating})

    [segment] = alone(train, assignment(tmp_path, per_worker_batch_size=4, gradient_accumulation_steps=2))
    assert state(segment)["updates"] == [[False, True], [False, True]]
    assert state(segment)["alternating"] == [False, False, True, True]


def test_a_second_optimizer_is_refused_on_parameter_servers(tmp_path):
    with refuses(TrialError, field=("optimizers", "parameter servers"), remedy="parameter groups"):
        servers(trains_an_adversary, assignment(tmp_path, per_worker_batch_size=8, tells=1.0))


def test_clipping_that_no_server_can_do_is_refused(tmp_path):
    words = {"per_worker_batch_size": 8, "max_norm": 0.3, "mode": "sync", "num_workers": 3, "num_servers": 2}
    with refuses(
        TrialError,
        field=("max_norm", "mode", "sync", "num_servers", "2", "backup_workers", "1"),
        value=0.3,
        remedy="0",
    ):
        servers(clips, assignment(tmp_path, **words, backup_workers=1))


def test_a_norm_of_numpys_is_a_norm(tmp_path):
    both = [
        alone(clips, assignment(tmp_path, name=str(number), per_worker_batch_size=24, max_norm=norm))[0]
        for number, norm in enumerate((0.5, np.float32(0.5)))
    ]
    close(state(both[0])["model"], state(both[1])["model"], 0.0)


@pytest.mark.parametrize("words", [{"from": 0}, {"from": 1}, {"from": 0, "post": True}], ids=str)
def test_a_hook_on_steps_is_refused_on_parameter_servers(tmp_path, words):
    with refuses(ConfigurationError, field=("SGD", "hooks"), remedy=("context.step", "max_norm")):
        servers(hooks, assignment(tmp_path, per_worker_batch_size=8, max_norm=1.0, **words))
