"""Programs of a pipeline's workers without a training function: a model, so many updates, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.process_gang import ProcessGang
from tests.support.transformer import LENGTH, PLAN, TOKENS, Transformer, whole
from trainers.gangs.messages import Assignment
from trainers.gangs.program import WorkerContext
from trainers.pytorch.devices import collect, forget
from trainers.pytorch.distribution import MicroBatch
from trainers.pytorch.gradients import ProcessGroup
from trainers.pytorch.layouts import Layout
from trainers.pytorch.layouts.parts import Groups
from trainers.pytorch.pipeline import Pipelined
from trainers.pytorch.plan import ModelPlan

CPU = torch.device("cpu")
BATCHES = (8, 8, 5, 8, 1)
"""Rows of the batches of all workers together, again and again: uneven ones, and one of a single worker's."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order to the workers.

    Args:
        layout: of the gang.
        plan: of the model.
        steps: updates.
        accumulation: losses to each update.
        max_norm: of the update's gradient.
        act: does something else in place of training; it is given the worker.
    """

    layout: Layout = field(default_factory=Layout)
    plan: ModelPlan = PLAN
    steps: int = 20
    accumulation: int = 1
    max_norm: float | None = None
    act: Callable[[PipelineWorker], Any] | None = None


class PipelineWorker:
    """A worker of a gang that is laid out in a pipeline; see `trainers.gangs.Program`."""

    def __init__(self, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s

    def open(self, context: WorkerContext) -> dict[str, float]:
        self.peers = ProcessGroup(context, CPU, self._timeout_s)
        self._groups = Groups(CPU, self._timeout_s)
        return {}

    def train(self, assignment: Assignment, *_: object) -> Any:
        self.peers.ready()
        try:
            return self.served(assignment.hyperparameters["order"])
        except Exception as error:
            self.distribution = self.parts = None  # A group's connections close once nobody holds it.
            self._groups.forget()
            forget(error)
            collect()
            if (first := self.peers.failed(error)) is not error:
                raise first from error
            raise

    def close(self) -> None:
        self.peers.close()

    def served(self, order: Order) -> Any:
        self.order = order
        self.parts = self._groups.parts(order.layout, self.peers)
        self.distribution = Pipelined(self.parts)
        if order.act:
            return order.act(self)
        model = transformer(3 + self.peers.rank)
        self.distribution.wrap(model, order.plan, as_it_is)
        return self.trained(model)

    def trained(self, model: nn.Module) -> dict[str, Any]:
        """Losses, by step, and the parameters afterwards."""
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        losses = []
        for tokens, following in batches(self.order.steps * self.order.accumulation):
            losses.append(self.step(model, optimizer, tokens, following, len(losses)))
        self.distribution.synchronize(optimizer)
        return {"losses": losses, "state": {name: whole(value).clone() for name, value in model.state_dict().items()}}

    def step(
        self, model: nn.Module, optimizer: Any, tokens: Tensor, following: Tensor, number: int
    ) -> tuple[float, int]:
        """One loss and its rows, on this part's rows of a batch of all."""
        mine = split(len(tokens), self.parts.data.world_size)[self.parts.data.rank]
        rows = mine.stop - mine.start
        scores = model(tokens[mine] if rows else tokens[:1])
        loss = next_token_loss(scores, following[mine] if rows else following[:1])
        update = self.order.accumulation
        total = sum(size for size in sizes(number // update * update, update))
        last = (number + 1) % update == 0
        micro = MicroBatch(rows=rows, update_rows=rows, total_rows=total, last=last)
        self.distribution.backward(loss, optimizer, micro, None)
        if last:
            self.distribution.update(optimizer, micro, self.order.max_norm)
        return loss.item(), rows


def as_it_is(module: nn.Module) -> None:
    """Sets nothing up."""


def transformer(seed: int = 3) -> nn.Module:
    """In float64, with parameters that depend on the seed alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Transformer().double()


def text(rows: int, seed: int = 5) -> tuple[Tensor, Tensor]:
    """Tokens, and those that come next: int64 (rows, LENGTH) each."""
    drawn = torch.randint(TOKENS, (rows, LENGTH + 1), generator=torch.Generator().manual_seed(seed))
    return drawn[:, :-1], drawn[:, 1:]


def next_token_loss(scores: Tensor, following: Tensor) -> Tensor:
    """The mean over rows and places."""
    return functional.cross_entropy(scores.reshape(-1, TOKENS), following.reshape(-1))


def sizes(first: int, count: int) -> list[int]:
    return [BATCHES[number % len(BATCHES)] for number in range(first, first + count)]


def batches(count: int) -> list[tuple[Tensor, Tensor]]:
    """Batches of all workers together."""
    return [text(rows, seed=number) for number, rows in enumerate(sizes(0, count))]


def split(rows: int, parts: int) -> list[slice]:
    """The rows of each data-parallel part; those of the last may be fewer, or none."""
    per = -(-rows // parts)
    return [slice(min(rows, per * part), min(rows, per * (part + 1))) for part in range(parts)]


def one_worker(steps: int = 20, accumulation: int = 1, max_norm: float | None = None) -> dict[str, Any]:
    """The same training in plain PyTorch."""
    model = transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    losses = []
    for number, (tokens, following) in enumerate(batches(steps * accumulation)):
        loss = next_token_loss(model(tokens), following)
        total = sum(sizes(number // accumulation * accumulation, accumulation))
        (loss * len(tokens) / total).backward()
        losses.append(loss.item())
        if (number + 1) % accumulation == 0:
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
    return {"losses": losses, "state": model.state_dict()}


def serve(gang: ProcessGang, *orders: Order, timeout_s: float = 30.0) -> list[list[Any]]:
    """By rank, what each order came to."""
    assignments = [
        Assignment(
            trial_id=str(number), hyperparameters={"order": order}, seed=1, start=0, stop=1, checkpoint=None, save_to=""
        )
        for number, order in enumerate(orders)
    ]
    return gang.run(lambda: PipelineWorker(timeout_s), *assignments)


def whole_state(answers: list[Mapping[str, Any]]) -> dict[str, Tensor]:
    """The whole model's parameters out of its stages'."""
    whole: dict[str, Tensor] = {}
    for answer in answers:
        for name, value in answer["state"].items():
            torch.testing.assert_close(whole.setdefault(name, value), value, rtol=0, atol=0)
    return whole


def whole_losses(answers: list[Mapping[str, Any]]) -> list[float]:
    """The mean losses over the rows of all parts; every worker of a part has to know the same."""
    means = []
    for step in zip(*(answer["losses"] for answer in answers), strict=True):
        parts = set(step)
        means.append(sum(loss * rows for loss, rows in parts) / sum(rows for _, rows in parts))
    return means


alone = cache(one_worker)


def results(gang: ProcessGang, *orders: Order) -> list[list[dict]]:
    """Return the results by order and rank; raise a worker's error."""
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
