"""Made-up streams of Ray Data, and a function that collects their rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from trainers import ScalingConfig, TorchTrainer
from trainers.channels import PlacedChannel, PlacedExamples, Streamed

ROWS = 22


class Part:
    """A worker's part, as Ray Data gives it: rows in an order of the seed; `fails` says what happens in a pass."""

    def __init__(self, fails: dict[int, Any]) -> None:
        self.passes, self.ended, self.fails = 0, 0, fails

    def iter_torch_batches(self, *, batch_size: int, **options: Any) -> Iterator[dict[str, torch.Tensor]]:
        number, self.passes = self.passes, self.passes + 1
        seed = options.get("local_shuffle_seed")
        rows = torch.randperm(ROWS, generator=torch.Generator().manual_seed(seed)) if seed else torch.arange(ROWS)
        try:
            for at in range(0, ROWS, batch_size):
                match self.fails.get(number):
                    case int(most) if at >= most:
                        return
                    case Exception() as error if at:
                        raise error
                    case threading.Event() as event if at:
                        event.wait(20)
                yield {"row": rows[at : at + batch_size]}
        finally:
            self.ended += 1


class Split(Streamed):
    """A dataset of one worker, which counts how often it was split."""

    def __init__(self, **fails: Any) -> None:
        object.__setattr__(self, "dataset", None)
        object.__setattr__(self, "buffer", 8)
        self.made: list[Part]
        object.__setattr__(self, "made", [])
        object.__setattr__(self, "fails", {int(name[1:]): what for name, what in fails.items()})

    def split(self, workers: int) -> list[Any]:
        self.made.append(Part(self.fails))
        return self.made[-1:]


def program(function, form: Streamed, **options):
    trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=60.0, **options)
    source = PlacedExamples(kind="ray_data", form=form)
    return trainer.program({"train": PlacedChannel(name="train", num_workers=0, source=source)})


def collects(context) -> None:
    model = context.prepare_model(nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.5), nn.Linear(4, 1)).double())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = context.prepare_data("train")
    came = []
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
        came = [*context.checkpoint["came"]]
    for _ in context.epochs():
        for batch in context.steps(batches) if "steps" in context.hyperparameters else batches:
            came.append(batch["row"].tolist())
            context.step(model(batch["row"].double()[:, None]).square().mean(), optimizer)
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "came": came}
        context.report({}, checkpoint=states)
