"""Pipelines in real processes: the numbers are one worker's, whatever the schedule, and errors are everybody's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from tests.support.pipelines import (
    Order,
    one_worker,
    serve,
    whole_losses,
    whole_state,
)
from tests.support.process_gang import ProcessGang, process_gang
from trainers.pytorch.layouts import Layout


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    with process_gang(4, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


alone = cache(one_worker)


def results(gang: ProcessGang, *orders: Order) -> list[list[dict]]:
    """By order and rank."""
    answers = serve(gang, *orders)
    for answer in answers:
        for found in answer:
            if isinstance(found, Exception):
                raise found
    return [list(found) for found in zip(*answers, strict=True)]


def check_exact(found: list[dict], **training) -> None:
    expected = alone(**training)
    np.testing.assert_allclose(whole_losses(found), expected["losses"], rtol=1e-12)
    state = whole_state(found)
    assert state.keys() == expected["state"].keys()
    for name, value in expected["state"].items():
        torch.testing.assert_close(state[name], value, rtol=1e-12, atol=1e-12)


def test_four_workers_train_as_one_worker(four: ProcessGang):
    layouts = [
        Layout(pipeline=4, schedule="1F1B", micro_batches=8),
        Layout(pipeline=2, shard=2, micro_batches=4),
        Layout(pipeline=2, shard=2, schedule="Interleaved1F1B", micro_batches=4, stages_per_worker=2),
        Layout(pipeline=2, tensor=2, micro_batches=2),
        Layout(pipeline=2, replicate=2, schedule="Interleaved1F1B", micro_batches=4, stages_per_worker=2),
    ]
    for found in results(four, *(Order(layout=layout) for layout in layouts)):
        check_exact(found)
