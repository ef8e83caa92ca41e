"""Updates as units of resource: reports every few of them, over the ends of passes and through pauses."""

from __future__ import annotations

import pytest

from tests.support.networks import assignment, close, data, state
from tests.support.process_gang import serve_alone
from tests.support.trainers.pytorch.steps import HERE, train
from trainers import ParameterServerTrainer
from trainers.channels import Channel


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
