"""Pipelines in real processes: the numbers are one worker's, whatever the schedule, and errors are everybody's."""

from __future__ import annotations

import pytest

from tests.support.pipelines import (
    Order,
    check_exact,
    results,
)
from tests.support.process_gang import ProcessGang, process_gang
from trainers.pytorch.layouts import Layout


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    with process_gang(4, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


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
