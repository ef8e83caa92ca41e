"""Deferred tensors: what a loss is computed of is recorded, and computed by micro-batch."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.refusals import mentions, refuses, refuses_each
from trainers import TrialError
from trainers.pytorch.pipeline import trees
from trainers.pytorch.pipeline.deferred import Call, Deferred, Output, settled
from trainers.pytorch.pipeline.parts import LossParts, is_mean, part_of

ROWS, COUNT, CLASSES = 8, 4, 5
GENERATOR = torch.Generator().manual_seed(1)
SCORES = torch.randn(ROWS, CLASSES, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.randint(CLASSES, (ROWS,), generator=GENERATOR)
TARGETS = torch.randn(ROWS, CLASSES, generator=GENERATOR, dtype=torch.float64)
SERIES = torch.randn(ROWS, 3, CLASSES, generator=GENERATOR, dtype=torch.float64)
SERIES_LABELS = torch.randint(CLASSES, (ROWS, 3), generator=GENERATOR)


def deferred(*outputs: Tensor) -> tuple[list[Deferred], Call]:
    call = Call(ROWS, torch.device("cpu"))
    return [Deferred.of(output.to("meta"), Output(call, index), call) for index, output in enumerate(outputs)], call


def chunks(outputs: tuple[Tensor, ...], index: int) -> list[Tensor]:
    return [part_of(output, ROWS, index, COUNT) for output in outputs]


def by_parts(loss: Deferred, *outputs: Tensor) -> tuple[list[Tensor], LossParts]:
    parts = LossParts(loss, COUNT, [output.to("meta") for output in chunks(outputs, 0)], {})
    return [parts.value(chunks(outputs, index), index) for index in range(COUNT)], parts


class Reversed(torch.autograd.Function):
    """The identity, whose gradient is turned around."""

    @staticmethod
    def forward(ctx, scores: Tensor) -> Tensor:
        return scores.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return -gradient


def autocast_mean(scores: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (scores.float() @ torch.ones(CLASSES, 2)).float().mean()


def with_a_constant_part(scores: Tensor) -> Tensor:
    with torch.no_grad():
        certain = scores.softmax(1).max(1).values
    return (certain * scores.logsumexp(1)).mean()


def added_in_place(scores: Tensor) -> Tensor:
    loss = functional.mse_loss(scores, TARGETS)
    loss += 0.1 * functional.cross_entropy(scores, LABELS)
    return loss


LOSSES = {
    "cross entropy": lambda s: functional.cross_entropy(s, LABELS),
    "a loss module": lambda s: nn.CrossEntropyLoss(label_smoothing=0.1)(s, LABELS),
    "mean squares": lambda s: functional.mse_loss(s, TARGETS),
    "two losses": lambda s: functional.mse_loss(s, TARGETS) + 0.3 * functional.cross_entropy(s, LABELS),
    "a sum in place": added_in_place,
    "no reduction": lambda s: functional.cross_entropy(s, LABELS, reduction="none").mean(),
    "operators": lambda s: ((s - TARGETS) ** 2 / 2).sum(1).mean() * 2.0,
    "constants first": lambda s: (1.0 - (TARGETS * s).tanh()).mean(),
    "joined": lambda s: torch.cat([s, TARGETS], dim=1).pow(2).mean(),
    "several results": lambda s: s.max(dim=1).values.mean() - s.min(dim=1)[0].mean(),
    "weights of columns": lambda s: functional.binary_cross_entropy_with_logits(
        s, TARGETS.sigmoid(), pos_weight=torch.arange(1.0, CLASSES + 1, dtype=torch.float64)
    ),
    "properties": lambda s: (s.T.T.to(s.dtype) * s.shape[1]).mean(),
    "other devices": lambda s: functional.cross_entropy(s.to("cpu").cpu(), LABELS.to(s.device)),
    "iteration": lambda s: sum(row.square().mean() for row in s.unbind(1)) / len(s[0]),
    "no gradient": with_a_constant_part,
    "mixed precision": autocast_mean,
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_of_the_parts_is_the_loss_and_its_gradient(name: str):
    function = LOSSES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = SCORES.clone().requires_grad_()
        expected = function(whole)
        expected.backward()
        scores = SCORES.clone().requires_grad_()
        [output], _ = deferred(SCORES)
        values, parts = by_parts(function(output), scores)
    mean = torch.stack(values).mean()
    mean.backward()
    torch.testing.assert_close(mean, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(scores.grad, whole.grad, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(parts.whole([SCORES]), expected.detach(), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "flat",
    [
        lambda s: (s.reshape(-1, CLASSES), SERIES_LABELS.reshape(-1)),
        lambda s: (s.view(ROWS * 3, CLASSES), SERIES_LABELS.view(ROWS * 3)),
        lambda s: (torch.reshape(s, (s.shape[0] * s.shape[1], CLASSES)), SERIES_LABELS.flatten()),
        lambda s: (s.flatten(0, 1), SERIES_LABELS.flatten()),
        lambda s: (s.transpose(1, 2), SERIES_LABELS),
    ],
)
def test_places_within_rows_are_flattened(flat):
    [output], _ = deferred(SERIES)
    values, _ = by_parts(functional.cross_entropy(*flat(output)), SERIES)
    expected = functional.cross_entropy(SERIES.transpose(1, 2), SERIES_LABELS)
    torch.testing.assert_close(torch.stack(values).mean(), expected, rtol=1e-12, atol=0)


class Pair(NamedTuple):
    scores: Tensor
    values: Tensor


@pytest.mark.parametrize(
    "tree",
    [{"scores": SCORES, "values": TARGETS, "name": None}, [SCORES, (TARGETS,)], Pair(SCORES, TARGETS)],
    ids=["dictionary", "list", "named tuple"],
)
def test_outputs_may_be_trees(tree):
    outputs = tuple(trees.tensors(tree))
    parts, _ = deferred(*outputs)
    filled = trees.filled(trees.without(tree), parts)
    assert type(filled) is type(tree)
    first, second = trees.tensors(filled)
    values, _ = by_parts(functional.mse_loss(first, second), *outputs)
    torch.testing.assert_close(torch.stack(values).mean(), functional.mse_loss(SCORES, TARGETS), rtol=1e-12, atol=0)


def test_weights_of_classes_that_look_like_a_batch_are_not_cut_unless_that_is_right():
    """Eight classes, eight rows: weights of two of the classes are no weights at all."""
    scores = torch.randn(ROWS, ROWS, dtype=torch.float64)
    labels, weight = torch.randint(ROWS, (ROWS,)), torch.rand(ROWS, dtype=torch.float64)
    [output], _ = deferred(scores)
    loss = functional.cross_entropy(output, labels, weight=weight, label_smoothing=0.1)
    values, parts = by_parts(loss, scores)
    for index, value in enumerate(values):
        rows = slice(2 * index, 2 * index + 2)
        expected = functional.cross_entropy(scores[rows], labels[rows], weight=weight, label_smoothing=0.1)
        torch.testing.assert_close(value, expected)
    # It is a mean of weights, not of rows, which the comparison finds.
    assert not is_mean(float(parts.whole([scores])), float(torch.stack(values).mean()), torch.float64)


def test_a_loss_that_cannot_be_cut_is_an_error():
    [output], _ = deferred(SCORES)
    with refuses(TrialError, field=("loss", "micro-batches", "1", "4"), value="(8, 5)"):
        by_parts((output.view(CLASSES, ROWS) @ TARGETS).mean(), SCORES)
    with refuses(TrialError, field=("context.step()", "loss"), value="(8,)", remedy="mean"):
        by_parts(output.sum(1), SCORES)
    with refuses(TrialError, field=("loss", "parameters"), remedy="weight_decay"):
        by_parts(output.mean() + nn.Parameter(torch.ones(())), SCORES)


def test_values_before_the_step_are_errors():
    cases = [
        (lambda s: s.mean().item(), ("item()", "context.step", "torch.no_grad")),
        (lambda s: float(s.mean()), ("float()", "context.step")),
        (lambda s: bool(s.sum() > 0), ("bool()", "context.step")),
        (lambda s: s.tolist(), ("tolist()", "context.step")),
        (lambda s: s.numpy(), ("numpy()", "context.step")),
        (lambda s: f"{s.mean():.3f}", ("format()", "context.step")),
        (lambda s: s.mean().backward(), ("loss.backward()", "context.step(loss, optimizer)")),
        (lambda s: s.__setitem__(0, 1.0), ("__setitem__",)),
        (lambda s: s.mul_(2), ("mul_",)),
        (lambda s: s[s > 0].mean(), ("shape", "context.step()")),
        (lambda s: Reversed.apply(s).mean(), ("Reversed.apply()", "torch.autograd.Function", "forward")),
    ]
    refuses_each([(partial(use, deferred(SCORES)[0][0]), names) for use, names in cases], TrialError)


def test_two_calls_of_the_model_are_not_mixed():
    [one], _ = deferred(SCORES)
    [other], _ = deferred(SCORES)
    with refuses(TrialError, field="add", remedy="batch"):
        one + other


def test_shapes_are_known_before_the_step():
    [output], _ = deferred(SCORES)
    assert (output.shape, output.dtype, output.ndim, len(output)) == ((ROWS, CLASSES), torch.float64, 2, ROWS)
    assert output.device == torch.device("cpu")
    assert output.requires_grad
    assert not output.is_cuda
    mentions(repr(output), "(8, 5)", "context.step()")
    assert "deferred" in f"{output}"


def test_values_are_known_after_the_step():
    [output], call = deferred(SCORES)
    loss = functional.mse_loss(output, TARGETS)
    kept = loss.detach() * ROWS
    right = (output.argmax(1) == LABELS).float().mean()
    fetched = []

    def fetch() -> list[Tensor]:
        fetched.append(True)
        return [SCORES]

    settled(loss, torch.tensor(0.25, dtype=torch.float64))
    call.is_over, call.fetch = True, fetch
    assert (loss.item(), float(loss), kept.item()) == (0.25, 0.25, 2.0)
    assert (f"{loss:.2f}", f"{loss.item():.1f}") == ("0.25", "0.2")
    assert "0.25" in repr(loss)
    assert math.isfinite(loss)
    assert type(loss + 1) is Tensor
    assert type(loss.detach()) is Tensor
    assert not fetched
    assert right.item() == (SCORES.argmax(1) == LABELS).float().mean().item()
    torch.testing.assert_close(output.softmax(1), SCORES.softmax(1))
    call.fetch = None
    with refuses(TrialError, field=("output", "pipeline")):
        Deferred.of(SCORES.to("meta"), Output(call, 0), call).sum()


def test_a_call_knows_whether_more_than_its_loss_is_asked_for():
    [output], call = deferred(SCORES)
    loss = output.mean()
    assert call.others(loss)
    del output
    assert not call.others(loss)
