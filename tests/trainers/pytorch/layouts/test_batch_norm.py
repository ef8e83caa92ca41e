"""Batch normalisation over the rows of all workers: that of one worker with all rows, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.allreduce import alone, only, only_errors, program
from tests.support.networks import assignment, close, servers, small_buckets, state
from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions, refuses
from trainers import ModelPlan
from trainers.errors import TrialError


def network(images: bool) -> nn.Module:
    """Normalisations of images, and of rows where asked; a cumulative average, none, and one without parameters."""
    rows = [nn.BatchNorm1d(8, affine=False), nn.Tanh(), nn.BatchNorm1d(8, track_running_stats=False)]
    return nn.Sequential(
        nn.Unflatten(1, (2, 3)),
        nn.Conv1d(2, 4, 2),
        nn.BatchNorm1d(4, momentum=None),
        nn.Flatten(),
        nn.Linear(8, 8),
        *([] if images else rows),
        nn.Linear(8, 2),
    ).double()


def normalised(context) -> None:
    words = context.hyperparameters
    model = network(words.get("images", False))
    plan = ModelPlan(sync_batch_norm=words.get("sync", True), recompute=words.get("recompute", False))
    model = context.prepare_model(model, plan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    for _ in context.epochs():
        model.train()
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        model.eval()
        with torch.no_grad():
            rows = context.shard("train").features.double()
            loss = context.sum(model(rows).square().sum())
        found = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": loss}
        context.report({}, checkpoint=found)


@pytest.mark.process
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


@pytest.mark.process
def test_without_it_each_worker_normalises_its_own_rows(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 4, "sync": False}
    [first, *_] = only(gang.run(program(normalised, 96), assignment(tmp_path, **words)))
    [one] = alone(normalised, 96, assignment(tmp_path, name="one", per_worker_batch_size=12))
    assert not torch.allclose(state(first)["model"]["1.weight"], state(one)["model"]["1.weight"])


def wrongly(context) -> None:
    model = context.prepare_model(nn.BatchNorm1d(7), ModelPlan(sync_batch_norm=True))
    for _ in context.epochs():
        model(context.shard("train").features)


@pytest.mark.process
def test_rows_of_another_width_are_refused(gang: ProcessGang, tmp_path):
    [first, *_] = only_errors(gang.run(program(wrongly), assignment(tmp_path)))
    mentions(str(first), "BatchNorm1d(7)", "(32, 6)", "(rows, 7, ...)")


def test_parameter_servers_refuse_it_since_workers_have_no_batch_together(tmp_path):
    with refuses(TrialError, field="sync_batch_norm", remedy="TorchTrainer"):
        servers(normalised, assignment(tmp_path, per_worker_batch_size=8, num_workers=2))
    servers(normalised, assignment(tmp_path, name="one", per_worker_batch_size=8, num_workers=1))
