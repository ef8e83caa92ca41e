"""Schedules of the learning rate and averages of weights: with pauses in a pass, the bits of a trial without any."""

from __future__ import annotations

import pytest
import torch
from ray.train import ScalingConfig
from torch import nn

from tests.support.allreduce import program
from tests.support.networks import assignment, data, state
from tests.support.process_gang import serve_alone
from tests.support.trainers.pytorch.recipes import SCHEDULES, TOTAL, alike, train
from trainers import ParameterServerTrainer
from trainers.channels import Channel

HERE = ScalingConfig(num_workers=0)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("trainer", ["alone", "servers"])
def test_it_goes_on_exactly(tmp_path, schedule, trainer):
    words = {"per_worker_batch_size": 8, "schedule": schedule}
    if trainer == "servers":
        words |= {"num_workers": 2, "mode": "sync"}
        made = ParameterServerTrainer(train, scaling=HERE, steps_per_report=5).program(
            {"train": Channel.of(data(101), name="train").place(0)}
        )
    else:
        made = program(train, 101, steps_per_report=5)()
    trials = [assignment(tmp_path, at, at + 1, "parts", **words) for at in range(8)]
    whole, *_, parts = serve_alone(made, assignment(tmp_path, 0, 8, "whole", **words), *trials)
    one, other = state(whole), state(parts)
    assert alike(one, other)
    assert len(set(one["rates"])) > 2
    assert len(one["rates"]) == TOTAL
    if schedule != "plateau":
        alone = torch.optim.AdamW([nn.Parameter(torch.ones(1))], lr=0.01)
        expected, scheduler = [], SCHEDULES[schedule](alone)
        for _ in range(TOTAL):
            expected.append(alone.param_groups[0]["lr"])
            alone.step()
            scheduler.step()
        assert one["rates"] == expected
    # The average, which counts buffers too, is that of one's own shadow, from its second update on.
    assert one["average"]["n_averaged"] == TOTAL
    assert one["average"]["module.1.num_batches_tracked"] > 0
