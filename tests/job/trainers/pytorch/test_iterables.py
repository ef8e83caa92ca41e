"""Iterable datasets: dealt out batch by batch or a worker's own, of any number of batches, and exact after a pause."""

from __future__ import annotations

from tests.support.allreduce import program
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.iterables import collects, loader
from trainers.errors import TrialError


def test_an_empty_dataset_ends_steps(tmp_path):
    make = program(collects(lambda context: loader(context, stop=0), per_unit=5), steps_per_report=5)
    [error] = serve_alone(make(), assignment(tmp_path))
    assert isinstance(error, TrialError)
    mentions(str(error), "context.steps()", "batch")
