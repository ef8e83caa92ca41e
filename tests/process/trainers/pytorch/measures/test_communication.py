"""Communication of steps: bytes and seconds by worker, whatever the distribution."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.support.allreduce import only, program
from tests.support.networks import assignment, network, small_buckets, train_exactly
from tests.support.process_gang import process_gang


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def test_all_reduce_tells_bytes_and_seconds_of_each_worker(gang, tmp_path):
    first, second = only(gang.run(program(train_exactly), assignment(tmp_path, per_worker_batch_size=8)))
    said = first.details["communication"]
    parameters = sum(parameter.nbytes for parameter in network().parameters())
    assert said == second.details["communication"]
    assert said["steps"] == {"0": 12, "1": 12}
    assert said["bytes"] == {"0": 12 * parameters, "1": 12 * parameters}
    for rank in ("0", "1"):
        assert 0 < said["waiting_seconds"][rank] < said["step_seconds"][rank] < first.training_seconds


def test_bytes_do_not_depend_on_buckets(gang, tmp_path):
    [first, _] = only(
        gang.run(program(train_exactly), assignment(tmp_path, per_worker_batch_size=8), before=small_buckets)
    )
    assert first.details["communication"]["bytes"]["1"] == 12 * sum(of.nbytes for of in network().parameters())


def fails_on_one(context) -> None:
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})
    if context.rank == 1 and "fail" in context.hyperparameters:
        raise ValueError("after the last report")


def test_a_failure_after_the_last_report_is_that_of_all(gang, tmp_path):
    def given(**words):
        return assignment(tmp_path, per_worker_batch_size=8, **words)

    answers = gang.run(program(fails_on_one), given(fail=1), given())
    assert ["after the last report" in str(answer[0]) for answer in answers] == [True, True]
    assert [answer[1].details["communication"]["steps"]["1"] for answer in answers] == [12, 12]
