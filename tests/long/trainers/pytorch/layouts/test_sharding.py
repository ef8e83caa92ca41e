"""Layouts of shards and tensors train as one worker does with the same global batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from ray.train import ScalingConfig
from torch import nn

from tests.support.networks import assignment, data
from tests.support.process_gang import SECONDS, ProcessGang, serve_alone
from tests.support.refusals import mentions, missing_names
from tests.support.trainers.pytorch.layouts.sharding import (
    WORDS,
    ended,
    gang,  # noqa: F401  # Fixtures.
    program,
)
from tests.support.transformer import PLAN, Transformer, loss_of, text, train_text
from trainers import Examples, ModelPlan, TorchTrainer, TrainContext, TrialError
from trainers.channels import Channel
from trainers.gangs.messages import Report, Segment
from trainers.pytorch.layouts import forecast

Trained = tuple[tuple[Report, ...], dict[str, torch.Tensor]]
"""Reports, and parameters by name."""


EPOCHS = 5
"""Of 4 updates each, the last of which has 3 rows of 8."""

LAYOUTS = [
    "shard=4",
    "replicate=2 shard=2",
    "tensor=4",
    "shard=2 tensor=2",
    "replicate=2 tensor=2",
    "pipeline=4 micro_batches=8",
    "pipeline=2 replicate=2 micro_batches=4",
    "pipeline=2 shard=2 schedule=GPipe",
    "pipeline=2 tensor=2 schedule=Interleaved1F1B stages_per_worker=2 micro_batches=4",
]


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    """What the workers left."""
    values: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.pt")):
        values |= torch.load(file)
    return values


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[torch.dtype], Trained]:
    """What one worker comes to, by the type of its numbers."""

    @cache
    def trained(dtype: torch.dtype) -> Trained:
        folder = tmp_path_factory.mktemp("alone")
        made = program(partial(train_text, dtype=dtype))()
        segment = serve_alone(made, assignment(folder / "trials", stop=EPOCHS, **WORDS, leave=str(folder)))[0]
        assert isinstance(segment, Segment), segment
        return segment.reports, parameters(folder)

    return trained


@pytest.mark.parametrize("layout", LAYOUTS)
def test_losses_and_parameters_are_those_of_one_worker(
    gang: ProcessGang, alone: Callable[[torch.dtype], Trained], tmp_path: Path, layout: str
) -> None:
    compare(gang, alone, tmp_path, layout, torch.float64)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_losses_and_parameters_of_single_precision_are_those_of_one_worker(
    gang: ProcessGang, alone: Callable[[torch.dtype], Trained], tmp_path: Path, layout: str
) -> None:
    compare(gang, alone, tmp_path, layout, torch.float32)


def compare(
    gang: ProcessGang, alone: Callable[[torch.dtype], Trained], tmp_path: Path, layout: str, dtype: torch.dtype
) -> None:
    """Check a training in a layout against one worker's."""
    reports, values = alone(dtype)
    near = 1e-12 if dtype == torch.float64 else 2e-5
    made = program(partial(train_text, dtype=dtype), layout)
    order = assignment(tmp_path / "trials", stop=EPOCHS, **WORDS, leave=str(tmp_path))
    (segment,) = ended(gang.run(made, order))
    for mine, theirs in zip(segment.reports, reports, strict=True):
        assert mine.metrics["train:loss"] == pytest.approx(theirs.metrics["train:loss"], abs=near)
    found = parameters(tmp_path)
    assert found.keys() == values.keys()
    for name, value in values.items():
        assert (found[name] - value).abs().max() < near, name
    said = segment.details["communication"]
    assert len({*said["steps"].values()}) == 1
    assert all(0 <= said["waiting_seconds"][rank] < said["step_seconds"][rank] for rank in said["steps"])
    if "shard" in layout or "replicate" in layout:  # What tensors and stages are exchanged for is not counted.
        assert min(said["bytes"].values()) > 0


def train_examples(context: TrainContext) -> None:
    """A network on rows (number, square), in an order of the seed."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    model = context.prepare_model(net, ModelPlan(tensor={"0": "colwise", "2": "rowwise"}))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = context.prepare_data("train")
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    for _ in context.epochs():
        summed = torch.zeros(2, dtype=torch.float64)
        for rows, number in batches:
            loss = (model(rows.double() / 400)[:, 0] - number / 20).square().mean()
            context.step(loss, optimizer)
            summed += torch.tensor([loss.item() * len(number), len(number)], dtype=torch.float64)
        mean, count = context.sum(summed).tolist()
        context.report({"train:loss": mean / count}, checkpoint={"model": model.state_dict()})


@pytest.mark.parametrize("kind", ["Squares", "InOrder"])
def test_examples_train_in_every_layout_as_on_one_worker(gang: ProcessGang, tmp_path: Path, kind: str) -> None:
    """Of a map-style dataset and of an iterable one, which every worker reads; with a pause after each epoch."""

    def made(layout: str) -> Any:
        channel = Channel.of(Examples.named(f"tests.support.examples:{kind}"), name="train")
        return program(train_examples, layout, channels=lambda: {"train": channel.place(0)})

    def losses(name: str, run: Callable[..., Any], layout: str = "") -> list[float]:
        orders = [assignment(tmp_path, at, at + 1, name, global_batch_size=4) for at in range(2)]
        return [segment.reports[0].metrics["train:loss"] for segment in run(made(layout), *orders)]

    alone = losses("alone", lambda make, *orders: serve_alone(make(), *orders))
    assert alone[1] < alone[0]
    for number, layout in enumerate(("", "shard=4", "tensor=2 replicate=2", "pipeline=2 shard=2 micro_batches=4")):
        found = losses(f"trial-{number}", lambda *given: ended(gang.run(*given)), layout)
        assert found == pytest.approx(alone, abs=1e-12), layout


def fails_on_one(context: TrainContext) -> None:
    """On one worker, between its steps; the others wait for it in a collective."""
    model = context.prepare_model(Transformer().double(), PLAN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        for step in range(4):
            if context.hyperparameters["fail"] and step == 2 and torch.distributed.get_rank() == 2:
                raise ValueError("as asked")
            context.step(loss_of(model, text(2)), optimizer)
        context.report({"train:loss": 1.0}, checkpoint={"none": 0})


@pytest.mark.parametrize("layout", ["shard=4", "tensor=4"])
def test_a_worker_that_fails_ends_the_trial_for_all_and_the_next_one_trains(
    gang: ProcessGang, tmp_path: Path, layout: str
) -> None:
    orders = [assignment(tmp_path, stop=1, name=name, fail=name == "failing", **WORDS) for name in ("failing", "sound")]
    answers = gang.run(program(fails_on_one, layout), *orders)
    assert [str(answer[0]) for answer in answers if "as asked" in str(answer[0])], answers
    assert all(isinstance(answer[0], Exception) for answer in answers)
    assert not [answer[0] for answer in answers if "Timed out" in str(answer[0])]
    assert all(isinstance(answer[1], Segment) for answer in answers), answers


def one_lacks_memory(context: TrainContext) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if context.hyperparameters["lacks"] and torch.distributed.get_rank() == 2:
            patch.setattr(forecast, "free_memory", lambda *_: 10)
        train_text(context)


@pytest.mark.parametrize("layout", ["shard=4", "replicate=4"])
def test_memory_that_one_worker_lacks_is_everybody_s_error_at_once(
    gang: ProcessGang, alone: Callable[[torch.dtype], Trained], tmp_path: Path, layout: str
) -> None:
    """Each looks at its own, at its own moment; answers of a gang come too late for those who wait for a deadline."""
    trials = [assignment(tmp_path, stop=1, name=name, lacks=name == "lacks", **WORDS) for name in ("lacks", "sound")]
    answers = gang.run(program(one_lacks_memory, layout, report_timeout_s=2 * SECONDS), *trials)
    expected = alone(torch.float64)[0][0].metrics["train:loss"]
    for rank, (error, sound) in enumerate(answers):
        assert isinstance(error, TrialError)
        mentions(str(error), "10 B", "ModelPlan(recompute=True)", "shard=2")
        assert bool(missing_names(str(error), "rank 2")) == (rank == 2), error
        assert isinstance(sound, Segment), sound
        assert sound.reports[0].metrics["train:loss"] == pytest.approx(expected, abs=1e-12)


def counts_rows(context: TrainContext) -> None:
    """Rows of a channel: each part has its own, and those who share a model have the same."""
    shard = context.shard("train")
    seen = context.sum(shard.features[:, 0].double().sum())
    for _ in context.epochs():
        context.report(
            {"train:rows": float(context.sum(float(len(shard)))), "train:sum": float(seen), "train:own": len(shard)},
            checkpoint={"none": 0},
        )


@pytest.mark.parametrize(("layout", "parts"), [("shard=4", 4), ("tensor=2", 2), ("tensor=4", 1), ("shard=1", 4)])
def test_rows_are_dealt_out_to_the_data_parallel_parts(
    gang: ProcessGang, tmp_path: Path, layout: str, parts: int
) -> None:
    features, labels = data(96)

    def make() -> Any:
        trainer = TorchTrainer(counts_rows, scaling=ScalingConfig(num_workers=0), report_timeout_s=60.0)
        return trainer.program({"train": Channel.of((features, labels), name="train").place(4)})

    (segment,) = ended(gang.run(make, assignment(tmp_path, stop=1, layout=layout)))
    metrics = segment.reports[0].metrics
    assert metrics["train:rows"] == 96
    assert metrics["train:own"] == 96 / parts
    assert metrics["train:sum"] == pytest.approx(features[:, 0].astype(float).sum())


def test_trials_of_all_layouts_take_turns_on_one_gang(gang: ProcessGang, tmp_path: Path) -> None:
    """And each comes to the same, whichever was before it."""
    layouts = ["shard=4", "", "tensor=2", "shard=4", "tensor=2", "shard=2 tensor=2"]
    orders = [
        assignment(tmp_path, stop=1, name=f"trial-{at}", layout=layout or "shard=1", **WORDS)
        for at, layout in enumerate(layouts)
    ]
    losses = [segment.reports[0].metrics["train:loss"] for segment in ended(gang.run(program(train_text), *orders))]
    assert losses == pytest.approx([losses[0]] * len(losses), abs=1e-12)
    assert (losses[0], losses[2]) == (losses[3], losses[4])
