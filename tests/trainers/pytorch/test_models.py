"""Mixed precision and compilation: for a model and its copies, and for trial after trial."""

from __future__ import annotations

import copy
from collections import namedtuple
from functools import partial

import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

from tests.support.networks import assignment, close, data, state
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer
from trainers.channels import Channel

HERE = ScalingConfig(num_workers=0)

Pair = namedtuple("Pair", ["first", "second"])


class Compiled(nn.Module):
    """Runs as compiled code only."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            raise RuntimeError("this model was not compiled")
        return self.layers(rows)


def train(context) -> None:
    words = context.hyperparameters
    made = Compiled(words.get("width", 4)) if words.get("compiled", True) else Compiled(4).layers
    model = context.prepare_model(made)
    optimizer = torch.optim.SGD(model.parameters(), lr=words.get("lr", 0.1))
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        weights = [part.detach().clone() for part in model.parameters()]
        context.report({}, checkpoint={str(number): part for number, part in enumerate(weights)})


def serve(*assignments, rows: int = 19, function=train, **options) -> list[dict]:
    trainer = TorchTrainer(function, scaling=HERE, **options)
    made = trainer.program({"train": Channel.of(data(rows), name="train").place(0)})
    return [state(segment) for segment in serve_alone(made, *assignments)]


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch):
    """What is compiled, by PyTorch's own compiler without the C++ behind it, which takes seconds each time."""
    found = []

    def backend(graph, inputs):
        found.append(graph)
        return graph.forward

    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    yield found
    torch.compiler.reset()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
def test_trials_that_are_alike_share_what_was_compiled_for_the_first(graphs, tmp_path, precision):
    words = {"per_worker_batch_size": 8}
    trials = [assignment(tmp_path, name=f"{at}", **words, lr=0.1 / (at + 1)) for at in range(10)]
    first, *_ = serve(*trials, compile=True, precision=precision)
    assert len(graphs) == 2  # Batches of 8 rows, and the last one of a pass.
    plain, *_ = serve(assignment(tmp_path, name="plain", **words, compiled=False), precision=precision)
    close(first, plain, 1e-6)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
def test_tuned_widths_are_compiled_however_many_there_were(graphs, tmp_path, precision):
    trials = [assignment(tmp_path, stop=1, name=f"{at}", per_worker_batch_size=8, width=at) for at in range(1, 13)]
    found = serve(*trials, rows=8, compile=True, precision=precision)
    assert [len(state["0"]) for state in found] == [*range(1, 13)]


def test_tuned_batches_are_compiled_however_many_there_were(graphs, tmp_path):
    trials = [assignment(tmp_path, stop=1, name=f"{at}", per_worker_batch_size=at) for at in range(2, 13)]
    assert len(serve(*trials, rows=13, compile=True)) == 11


@pytest.mark.system
def test_a_compiled_trial_ends_with_the_same_bits_whatever_its_gang_served_before(tmp_path):
    """With the C++ compiler: once alone, and once behind a trial of another batch, which no third compiles again."""
    words = {"per_worker_batch_size": 8}
    torch.compiler.reset()
    [fresh] = serve(assignment(tmp_path, name="fresh", **words), rows=16, compile=True)
    torch.compiler.reset()
    other = assignment(tmp_path, name="other", per_worker_batch_size=5)
    later, again = (assignment(tmp_path, name=name, **words) for name in ("later", "again"))
    _, after, repeated = serve(other, later, again, rows=16, compile=True)
    close(fresh, after, 0.0)
    close(fresh, repeated, 0.0)
    [plain] = serve(assignment(tmp_path, name="plain", **words, compiled=False), rows=16)
    close(fresh, plain, 1e-5)


def test_a_copy_of_a_model_in_mixed_precision_is_a_model_of_its_own(tmp_path):
    def function(context) -> None:
        rows = context.shard("train").features
        for _ in context.epochs():
            model = context.prepare_model(nn.Linear(6, 2))
            student, average = copy.deepcopy(model), AveragedModel(model)
            before = model(rows)
            with torch.no_grad():
                model.weight.zero_()
                model.bias.zero_()
            average.update_parameters(model)  # The first one copies.
            with torch.no_grad():
                average.module.bias.fill_(1.0)
            outputs = {"before": before, "model": model(rows), "student": student(rows), "average": average(rows)}
            context.report({}, checkpoint=outputs)

    [found] = serve(assignment(tmp_path, stop=1), function=function, precision="bf16")
    assert {output.dtype for output in found.values()} == {torch.float32}
    assert torch.equal(found["model"], torch.zeros(19, 2))
    assert torch.equal(found["student"], found["before"])
    assert torch.equal(found["average"], torch.ones(19, 2))
    assert found["before"].count_nonzero()


class Several(nn.Linear):
    def forward(self, rows):
        found = super().forward(rows)
        return {"pair": Pair(found, [found]), "rows": len(rows)}


def test_what_a_model_gives_in_mixed_precision_keeps_its_form(tmp_path):
    def function(context) -> None:
        model = context.prepare_model(Several(6, 2))
        for _ in context.epochs():
            found = model(context.shard("train").features)
            assert type(found["pair"]) is Pair
            assert found["pair"].first.dtype == found["pair"].second[0].dtype == torch.float32
            context.report({}, checkpoint={"rows": found["rows"]})

    [found] = serve(assignment(tmp_path, stop=1), function=function, precision="bf16")
    assert found == {"rows": 19}
