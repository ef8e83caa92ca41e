"""Forecasts of memory: activations are counted as autograd keeps them, and what does not fit is refused."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn.utils import prune

from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer, TrainContext
from trainers.gangs.messages import Segment
from trainers.pytorch.layouts import forecast


class Holds(nn.Module):
    """Has something beside its layer, which its forward pass takes no account of."""

    def __init__(self, what: object) -> None:
        super().__init__()
        self.layer, self.what = nn.Linear(3, 2), what

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layer(rows)


@pytest.mark.parametrize(
    "make",
    [
        partial(nn.utils.weight_norm, nn.Linear(3, 2)),
        lambda: nn.Sequential(prune.l1_unstructured(nn.Linear(3, 2), "weight", 0.3)),
        lambda: nn.Sequential(nn.LazyLinear(2)),
        lambda: Holds(threading.Lock()),
        lambda: Holds([torch.ones(2, requires_grad=True) * 2]),
        lambda: torch.jit.script(nn.Sequential(nn.Linear(3, 2))),
        lambda: Holds(torch.jit.script(nn.Linear(3, 2))),
    ],
    ids=["weight_norm", "pruned", "lazy", "lock", "computed tensors", "script", "script within"],
)
@pytest.mark.filterwarnings("ignore")
def test_models_that_cannot_be_copied_train_as_any(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make) -> None:
    monkeypatch.setattr(forecast, "_SURELY_SMALL", 0.0)

    def trains(context: TrainContext) -> None:
        model = context.prepare_model(make())
        rows = torch.ones(4, 3)
        model(rows)  # A lazy one has its parameters from here on.
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            context.step(model(rows).mean(), optimizer)
            context.report({"train:loss": 0.0}, checkpoint={"model": model.state_dict()})

    trainer = TorchTrainer(trains, scaling=ScalingConfig(num_workers=0))
    (found,) = serve_alone(trainer.program({}), assignment(tmp_path, stop=1))
    assert isinstance(found, Segment), found
