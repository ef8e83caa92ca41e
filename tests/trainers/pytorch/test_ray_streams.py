"""Streams of Ray Datasets without Ray: what a pass is, how it goes on, and how one that breaks off is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.networks import assignment, close, state
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from trainers import DataError, ScalingConfig, TorchTrainer, TrialError
from trainers.channels import PlacedChannel, PlacedExamples, Streamed
from trainers.pytorch.data import ray_streams

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


@pytest.mark.parametrize("steps", [1, 2])
def test_a_pause_in_the_middle_of_a_pass_changes_no_bit(tmp_path, steps):
    words = {"per_worker_batch_size": 4, "gradient_accumulation_steps": steps, "steps": True}
    [whole] = serve_alone(program(collects, Split(), steps_per_report=2), assignment(tmp_path, 0, 6, "whole", **words))
    parts = [assignment(tmp_path, at, at + 1, "parts", **words) for at in range(6)]
    form = Split()
    *_, part = serve_alone(program(collects, form, steps_per_report=2), *parts)
    assert state(whole)["came"] == state(part)["came"]
    close(state(whole)["model"], state(part)["model"], 0.0)
    rows = [row for batch in state(whole)["came"] for row in batch]
    assert sorted(rows[:ROWS]) == [*range(ROWS)]
    assert rows[:ROWS] != rows[ROWS : 2 * ROWS]
    assert len(form.made) > 1  # A pass that was left is let go of.


def test_trials_that_read_to_the_end_share_one_split(tmp_path):
    form = Split()
    trials = [assignment(tmp_path, name=name, per_worker_batch_size=4) for name in "abc"]
    first, *_, last = serve_alone(program(collects, form), *trials)
    assert len(form.made) == 1
    assert form.made[0].passes == 6
    assert state(first)["came"] == state(last)["came"]


def failed(tmp_path, form: Streamed, *more) -> str:
    [error, *rest] = serve_alone(program(collects, form), assignment(tmp_path, stop=3, per_worker_batch_size=4), *more)
    assert isinstance(error, DataError | TrialError), error
    assert not any(isinstance(each, Exception) for each in rest)
    return str(error)


def test_a_stream_that_ends_early_is_an_error_and_the_next_trial_trains(tmp_path):
    after = assignment(tmp_path, name="after", stop=1, per_worker_batch_size=4)
    said = failed(tmp_path, Split(p1=13), after)
    mentions(said, "channel", "train", "4", "pass 1", "6")
    mentions(failed(tmp_path, Split(p0=0)), "channel", "train", "0", "pass 0", "1")
    broken = failed(tmp_path, Split(p1=ValueError("Traceback\n  no such file")), after)
    mentions(broken, "channel", "train", "1", "no such file")


def test_a_stream_that_stalls_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_streams, "STALL_SECONDS", 0.2)
    event = threading.Event()
    said = failed(tmp_path, Split(p0=event))
    event.set()
    mentions(said, "channel", "train", "0.2 s", "1", "CPUs")


def test_a_pass_that_is_left_ends_its_part_and_its_thread(tmp_path):
    def leaves(context) -> None:
        batches = context.prepare_data("train")
        for _ in context.epochs():
            for _batch in batches:
                break
            context.report({}, checkpoint={})

    form = Split()
    serve_alone(program(leaves, form), assignment(tmp_path, stop=2, per_worker_batch_size=4))
    for thread in threading.enumerate():
        if thread.name == "ray-data":
            thread.join(20)
            assert not thread.is_alive()
    assert [part.ended for part in form.made] == [part.passes for part in form.made]


def test_processes_are_ray_datas_own(tmp_path):
    def asks(context) -> None:
        context.prepare_data("train", num_workers=2)

    [error] = serve_alone(program(asks, Split()), assignment(tmp_path, per_worker_batch_size=4))
    mentions(str(error), "num_workers", "2", "Ray Data")
