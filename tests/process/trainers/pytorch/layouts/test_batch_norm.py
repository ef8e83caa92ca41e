"""Batch normalisation over the rows of all workers: that of one worker with all rows, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.support.allreduce import alone, only, only_errors, program
from tests.support.networks import assignment, close, small_buckets, state
from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.layouts.batch_norm import normalised
from trainers import ModelPlan


@pytest.mark.parametrize(("rows", "batch", "images"), [(96, 4, False), (101, 4, False), (10, 4, False), (10, 3, True)])
@pytest.mark.parametrize("recompute", [False, True])
def test_workers_normalise_as_one_worker_with_all_rows(gang: ProcessGang, tmp_path, rows, batch, images, recompute):
    """Of 10 rows in batches of 9, the last is the first worker's; others repeat one of theirs, which must not count."""
    words = {"images": images, "recompute": recompute}
    trial = assignment(tmp_path, 0, 3, **words, per_worker_batch_size=batch)
    [first, *_] = only(gang.run(program(normalised, rows), trial, before=small_buckets))
    [one] = alone(normalised, rows, assignment(tmp_path, 0, 3, "one", **words, per_worker_batch_size=3 * batch))
    close(state(first)["model"], state(one)["model"])
    if images:  # A layer that tracks nothing evaluates by what each worker has.
        torch.testing.assert_close(state(first)["loss"], state(one)["loss"], rtol=1e-12, atol=0)


def test_without_it_each_worker_normalises_its_own_rows(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 4, "sync": False}
    [first, *_] = only(gang.run(program(normalised, 96), assignment(tmp_path, **words)))
    [one] = alone(normalised, 96, assignment(tmp_path, name="one", per_worker_batch_size=12))
    assert not torch.allclose(state(first)["model"]["1.weight"], state(one)["model"]["1.weight"])


def wrongly(context) -> None:
    model = context.prepare_model(nn.BatchNorm1d(7), ModelPlan(sync_batch_norm=True))
    for _ in context.epochs():
        model(context.shard("train").features)


def test_rows_of_another_width_are_refused(gang: ProcessGang, tmp_path):
    [first, *_] = only_errors(gang.run(program(wrongly), assignment(tmp_path)))
    mentions(str(first), "BatchNorm1d(7)", "(32, 6)", "(rows, 7, ...)")
