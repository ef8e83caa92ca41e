"""Pipelines in real processes: the numbers are one worker's, whatever the schedule, and errors are everybody's."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

from tests.support.pipelines import (
    Order,
    PipelineWorker,
    as_it_is,
    check_exact,
    next_token_loss,
    results,
    serve,
    text,
    transformer,
    whole_state,
)
from tests.support.process_gang import ProcessGang, process_gang
from tests.support.refusals import mentions, refuses
from tests.support.transformer import PLAN
from trainers import TrialError
from trainers.pytorch.distribution import MicroBatch
from trainers.pytorch.layouts import Layout
from trainers.pytorch.plan import ModelPlan
from trainers.pytorch.state import seed_all

INTERLEAVED = Layout(pipeline=2, schedule="Interleaved1F1B", micro_batches=4, stages_per_worker=2)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def test_each_schedule_on_two_workers_trains_as_one_worker(pair: ProcessGang):
    layouts = [
        Layout(pipeline=2, schedule="GPipe", micro_batches=4),
        Layout(pipeline=2, schedule="1F1B", micro_batches=4),
        Layout(pipeline=2, schedule="1F1B"),
        INTERLEAVED,
        Layout(pipeline=2, schedule="Interleaved1F1B", micro_batches=8, stages_per_worker=3),
    ]
    for found in results(pair, *(Order(layout=layout) for layout in layouts)):
        assert [len(answer["state"]) > 0 for answer in found] == [True, True]
        assert not found[0]["state"].keys() & found[1]["state"].keys()
        check_exact(found)


def test_accumulation_and_clipping_are_those_of_one_worker(pair: ProcessGang):
    layout = Layout(pipeline=2, micro_batches=2)
    accumulated, clipped = results(
        pair, Order(layout=layout, steps=7, accumulation=3), Order(layout=layout, steps=10, max_norm=0.5)
    )
    check_exact(accumulated, steps=7, accumulation=3)
    check_exact(clipped, steps=10, max_norm=0.5)


def test_without_gradients_every_worker_has_the_output(pair: ProcessGang):
    def act(worker: PipelineWorker) -> dict:
        model, whole = transformer(), transformer()
        worker.distribution.wrap(model, worker.order.plan, as_it_is)
        averaged = copy.deepcopy(model)
        for parameter in averaged.parameters():
            parameter.data.mul_(0.5)
        for parameter in whole.parameters():
            parameter.data.mul_(0.5)
        with torch.no_grad():
            found = {rows: model(tokens=text(rows)[0]) for rows in (8, 7, 1)}
            mean = averaged(text(8)[0])
        with torch.inference_mode():
            found["inference"] = model(text(8)[0])
        model.train()
        loss = next_token_loss(model(text(8)[0]), text(8)[1])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        micro = MicroBatch(rows=8, update_rows=8, total_rows=8, last=True)
        worker.distribution.backward(loss, optimizer, micro, None)
        return {"found": found, "averaged": mean, "expected": whole(text(8)[0]).detach(), "loss": loss.item()}

    model = transformer()
    layouts = [Layout(pipeline=2, micro_batches=4), INTERLEAVED]
    for found in results(pair, *(Order(layout=layout, act=act) for layout in layouts)):
        for answer in found:
            for rows, scores in answer["found"].items():
                tokens = text(8 if rows == "inference" else rows)[0]
                torch.testing.assert_close(scores, model(tokens).detach(), rtol=1e-12, atol=1e-14)
            torch.testing.assert_close(answer["averaged"], answer["expected"], rtol=1e-12, atol=1e-14)
            tokens, following = text(8)
            assert answer["loss"] == pytest.approx(next_token_loss(model(tokens), following).item(), rel=1e-12)


def test_a_function_reads_what_it_wants_after_the_step(pair: ProcessGang):
    def act(worker: PipelineWorker) -> dict:
        model = transformer()
        worker.distribution.wrap(model, worker.order.plan, as_it_is)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        tokens, following = text(8)
        scores = model(tokens)
        likelihood, penalty = next_token_loss(scores, following), 0.01 * scores.square().mean()
        loss = likelihood + penalty
        right = (scores.argmax(-1) == following).float().mean()
        running = loss.detach() * 2
        micro = MicroBatch(rows=8, update_rows=8, total_rows=8, last=True)
        worker.distribution.backward(loss, optimizer, micro, None)
        worker.distribution.update(optimizer, micro)
        said = [float(loss), likelihood.item(), penalty.item(), right.item(), running.item()]
        return {"said": said}

    model = transformer()
    tokens, following = text(8)
    scores = model(tokens).detach()
    likelihood, penalty = next_token_loss(scores, following).item(), 0.01 * scores.square().mean().item()
    right = (scores.argmax(-1) == following).float().mean().item()
    expected = [likelihood + penalty, likelihood, penalty, right, 2 * (likelihood + penalty)]
    [found] = results(pair, Order(layout=Layout(pipeline=2, micro_batches=4), act=act))
    for answer in found:
        assert answer["said"] == pytest.approx(expected, rel=1e-9)


def test_workers_of_a_pipeline_draw_apart_within_it_and_alike_outside(pair: ProcessGang):
    def act(worker: PipelineWorker) -> dict:
        model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(), nn.Linear(64, 64), nn.Dropout(), nn.Dropout())
        model[0].register_forward_hook(lambda module, given, output: output * random.random() * np.random.rand())  # noqa: NPY002
        masks = []
        for module in model:
            if isinstance(module, nn.Dropout):
                module.register_forward_hook(lambda module, given, output: masks.append((output == 0).flatten()))
        worker.distribution.wrap(model, ModelPlan(cuts=(2,)), as_it_is)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seed_all(5)
        micro = MicroBatch(rows=4, update_rows=4, total_rows=4, last=True)
        worker.distribution.backward(model(torch.ones(4, 4)).mean(), optimizer, micro, None)
        return {"mask": next(mask for mask in masks if not mask.is_meta), "next": drawn()}

    def drawn() -> torch.Tensor:
        return torch.tensor([random.random(), np.random.rand(), torch.rand(())])  # noqa: NPY002

    [found] = results(pair, Order(layout=Layout(pipeline=2), act=act))
    assert not torch.equal(found[0]["mask"], found[1]["mask"])
    assert torch.equal(found[0]["next"], found[1]["next"])


def test_a_stage_takes_its_part_of_a_whole_state(pair: ProcessGang):
    def act(worker: PipelineWorker) -> dict:
        model = transformer(1)
        worker.distribution.wrap(model, worker.order.plan, as_it_is)
        model.load_state_dict(transformer(8).state_dict())
        with refuses(RuntimeError, field="strange"):
            model.load_state_dict({**transformer(8).state_dict(), "strange": torch.ones(1)})
        return {"state": model.state_dict()}

    [found] = results(pair, Order(layout=Layout(pipeline=2), act=act))
    expected = transformer(8)
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(whole_state(found)[name], value, rtol=0, atol=0)


def test_stages_are_cut_by_hand_by_parameters_or_by_rank_0_s_measurement(pair: ProcessGang):
    def act(worker: PipelineWorker) -> dict:
        model = nn.Sequential(*(nn.Linear(8, width) for width in (8, 8)), nn.Linear(8, 200), nn.Linear(200, 8))
        worker.distribution.wrap(model, worker.order.plan, as_it_is)
        return {"names": [name for name, _ in model.named_parameters()]}

    orders = [
        Order(layout=Layout(pipeline=2), plan=plan, act=act)
        for plan in (ModelPlan(cuts=(1,)), ModelPlan(), ModelPlan(example=torch.ones(4, 8)))
    ]
    by_hand, by_parameters, measured = results(pair, *orders)
    assert [len(answer["names"]) for answer in by_hand] == [2, 6]
    assert [len(answer["names"]) for answer in by_parameters] == [6, 2]
    assert sum(len(answer["names"]) for answer in measured) == 8


def test_stages_whose_parameters_are_frozen_take_part(pair: ProcessGang):
    def act(worker: PipelineWorker) -> dict:
        model = transformer()
        worker.distribution.wrap(model, worker.order.plan, as_it_is)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith("head"))
        before = {name: value.clone() for name, value in model.state_dict().items()}
        worker.trained(model)
        return {"changed": [name for name, value in model.state_dict().items() if not torch.equal(before[name], value)]}

    [found] = results(pair, Order(layout=Layout(pipeline=2, micro_batches=4), steps=2, act=act))
    assert found[0]["changed"] == []
    assert all(name.startswith("head") for name in found[1]["changed"])
    assert found[1]["changed"]


def test_an_error_in_one_stage_is_everybody_s_and_the_gang_goes_on(pair: ProcessGang):
    class Fails(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.calls = nn.Linear(4, 4), 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += not x.is_meta
            if self.calls > 2:
                raise ValueError("a stage that fails")
            return self.layer(x)

    def act(worker: PipelineWorker) -> None:
        model = nn.Sequential(nn.Linear(4, 4), Fails())
        worker.distribution.wrap(model, ModelPlan(), as_it_is)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        micro = MicroBatch(rows=4, update_rows=4, total_rows=4, last=True)
        for _ in range(3):
            worker.distribution.backward(model(torch.ones(4, 4)).mean(), optimizer, micro, None)
            worker.distribution.update(optimizer, micro)

    served = Order(layout=Layout(pipeline=2, schedule="GPipe", micro_batches=4), steps=5)
    again = Order(layout=Layout(pipeline=2), plan=ModelPlan(sequence=PLAN.sequence, cuts=(1,)), steps=20)
    first, second = serve(pair, served, Order(layout=Layout(pipeline=2), act=act), again)
    mentions(str(first[1]), "rank 1", "ValueError", "a stage that fails")
    assert isinstance(second[1], ValueError)
    check_exact([first[2], second[2]])
    assert len(first[2]["state"]) == 2


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        (lambda scores: scores.mean().item(), ("item()", "context.step", "torch.no_grad")),
        (lambda scores: scores.sum(), ("loss", "mean", "4", "micro_batches=1")),
        (lambda scores: scores[torch.arange(8)].mean(), ("index", "2")),
        (lambda scores: torch.ones((), requires_grad=True), ("context.step()", "loss", "context.prepare_model()")),
        (lambda scores: scores.flatten()[0] * float("nan"), ("gradients", "0")),
    ],
    ids=["value", "sum", "rows by number", "no output", "not finite"],
)
def test_losses_that_a_pipeline_cannot_follow_are_errors_on_every_worker(pair: ProcessGang, loss, names):
    def act(worker: PipelineWorker) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        worker.distribution.wrap(model, ModelPlan(), as_it_is)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        micro = MicroBatch(rows=8, update_rows=8, total_rows=8, last=True)
        worker.distribution.backward(loss(model(torch.ones(8, 4))), optimizer, micro, None)
        worker.distribution.update(optimizer, micro)

    answers = serve(pair, Order(layout=Layout(pipeline=2, micro_batches=4), act=act))
    for answer in answers:
        assert isinstance(answer[0], Exception)
        mentions(str(answer[0]), *names)


def test_models_that_cannot_be_cut_are_errors(pair: ProcessGang):
    def tied(worker: PipelineWorker) -> None:
        model = transformer()
        model.head[1].weight = model.embedding.tokens.weight
        worker.distribution.wrap(model, worker.order.plan, as_it_is)

    def outside(worker: PipelineWorker) -> None:
        model = transformer()
        model.scale = nn.Parameter(torch.ones(1))
        worker.distribution.wrap(model, worker.order.plan, as_it_is)

    def no_batch(worker: PipelineWorker) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        worker.distribution.wrap(model, ModelPlan(), as_it_is)
        model(torch.ones(()))

    def no_rows(worker: PipelineWorker) -> None:
        model = transformer()
        worker.distribution.wrap(model, PLAN, as_it_is)
        model(text(4)[0], text(8)[0])

    def normalises(worker: PipelineWorker) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4))
        worker.distribution.wrap(model, ModelPlan(sync_batch_norm=True), as_it_is)

    layout = Layout(pipeline=2)
    orders = [Order(layout=layout, act=act) for act in (tied, outside, no_batch, no_rows, normalises)]
    orders.append(Order(layout=layout, act=tied, plan=ModelPlan(sequence=("embedding",))))
    expected = [
        ("embedding.tokens.weight", "head.1.weight", "stage 0", "stage 1"),
        ("parameter", "scale", "ModelPlan.sequence"),
        ("Sequential", "dimension 0", "micro-batches"),
        ("Transformer", "(4, 6)", "(8, 6)", "dimension 0", "buffer"),
        ("sync_batch_norm", "layout", "micro-batches", "Sequential"),
        ("stages", "2", "1", "ModelPlan.sequence"),
    ]
    orders.append(Order(layout=Layout(pipeline=2, micro_batches=1), act=normalises))
    for *answers, whole in serve(pair, *orders):
        for answer, names in zip(answers, expected, strict=True):
            assert isinstance(answer, TrialError)
            mentions(str(answer), *names)
        assert whole is None
