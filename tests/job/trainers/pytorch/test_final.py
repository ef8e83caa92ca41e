"""A trial that ends itself: its last report stands for the epochs that are left, and nothing is run for them."""

from __future__ import annotations

import pytest
from torch import nn

from tests.support.networks import HERE, assignment, run, servers, state
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.final import WORDS, steps, train
from trainers import TorchTrainer, TrialError


def in_one_process(*assignments) -> list:
    return run(TorchTrainer(train, scaling=HERE), *assignments)


def on_servers(*assignments) -> list:
    return servers(train, *assignments)


@pytest.mark.parametrize("serve", [in_one_process, on_servers])
@pytest.mark.parametrize("ends", [0, 2, 4])
def test_its_last_report_stands_for_the_epochs_that_are_left(tmp_path, serve, ends):
    words = {**WORDS, "ends": ends, **({"num_workers": 3} if serve is on_servers else {})}
    first, second = serve(assignment(tmp_path, stop=5, **words), assignment(tmp_path, start=5, stop=7, **words))
    assert steps(first) == [(epoch + 1, min(epoch, ends)) for epoch in range(5)]
    assert steps(second) == [(6, ends), (7, ends)]
    assert state(first)["epoch"] == state(second)["epoch"] == ends
    [short] = serve(assignment(tmp_path, name="short", stop=ends + 1, **words))
    for segment in (first, second):
        assert str(state(segment)["model"]) == str(state(short)["model"])


def test_a_loop_that_is_left_without_saying_so_is_told_how(tmp_path):
    def function(context) -> None:
        for epoch in context.epochs():
            context.report({}, checkpoint={"model": nn.Linear(1, 1).state_dict()})
            if epoch == 1:
                break

    with refuses(TrialError, field="5", value=2, remedy=("context.epochs()", "report()", "final=True")):
        run(TorchTrainer(function, scaling=HERE), assignment(tmp_path, stop=5, **WORDS))
