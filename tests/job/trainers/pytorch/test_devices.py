"""What becomes of a worker's device between trials: memory, precision, and errors that break it. No GPU is needed."""

from __future__ import annotations

import gc
import traceback
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.support.allreduce import program
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from trainers.errors import BrokenWorkerError
from trainers.gangs.messages import Segment
from trainers.pytorch.devices import collect, forget


def test_a_trial_that_breaks_the_device_has_its_own_reason_and_says_that_the_worker_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import trainers.pytorch.program as module

    def train(context) -> None:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(module, "breaks", lambda error, device: isinstance(error, torch.AcceleratorError))
    [error] = serve_alone(program(train)(), assignment(tmp_path, stop=1))
    assert isinstance(error, BrokenWorkerError)
    assert str(error) == "AcceleratorError: CUDA error: device-side assert triggered"


class Ring(nn.Module):
    """A model that refers to itself, as a prepared one does."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(8))
        self.__dict__["me"] = self


def test_an_error_holds_no_model_and_its_text_stays() -> None:
    made: list[weakref.ref[Ring]] = []

    def deep() -> None:
        model = Ring()
        made.append(weakref.ref(model))
        raise torch.OutOfMemoryError("CUDA out of memory")

    def middle() -> None:
        model = Ring()
        made.append(weakref.ref(model))
        try:
            deep()
        except torch.OutOfMemoryError as error:
            raise ValueError("the user's own words") from error

    gc.disable()
    try:
        try:
            middle()
        except ValueError as error:
            kept = error
        assert all(ref() is not None for ref in made)
        forget(kept)
        assert [ref() for ref in made] == [None, None]
        text = "".join(traceback.format_exception(kept))
        assert "in deep" in text
        assert "the user's own words" in text
    finally:
        gc.enable()


def test_what_only_a_graph_of_gradients_holds_is_collected_with_it() -> None:
    """As hooks of a model in shards are: the collector sees neither the graph nor what it holds."""

    class Ring:
        def __init__(self, held: object) -> None:
            self.held, self.ring = held, self

    inner = Ring(None)
    found = weakref.ref(inner)
    loss = torch.ones(1, requires_grad=True) * 2
    loss.grad_fn.register_hook(lambda *_, inner=inner: None)
    Ring(loss)
    del inner, loss
    collect()
    assert found() is None


def test_errors_that_go_round_in_a_circle_are_forgotten_too() -> None:
    first, second = ValueError("a"), ExceptionGroup("b", [ValueError("c")])
    first.__context__, second.__context__ = second, first
    forget(first)


def test_a_trial_that_has_no_memory_fails_and_leaves_none_behind(tmp_path: Path) -> None:
    """A real one: no machine has so much. The next trial finds what it held before free, though the error is kept."""
    held: list[weakref.ref[torch.Tensor]] = []

    def train(context) -> None:
        model = context.prepare_model(nn.Linear(6, 2))
        held.append(weakref.ref(model))
        if context.hyperparameters.get("most"):
            torch.empty(1 << 60)
        assert held[0]() is None
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            context.report({"train:loss": 0.0}, checkpoint={"optimizer": optimizer.state_dict()})

    first = assignment(tmp_path, stop=1, name="first", most=True)
    failed, segment = serve_alone(program(train)(), first, assignment(tmp_path, stop=1, name="second"))
    assert isinstance(failed, RuntimeError)
    assert not isinstance(failed, BrokenWorkerError)
    assert "allocate" in str(failed)
    assert isinstance(segment, Segment), segment
