"""What becomes of a worker's device between trials: memory, precision, and errors that break it. No GPU is needed."""

from __future__ import annotations

import gc
import threading
import time
import traceback
import weakref
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.support.allreduce import only_errors, program
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses
from trainers import ConfigurationError, TrialError
from trainers.errors import BrokenWorkerError
from trainers.gangs.messages import Segment
from trainers.pytorch import devices
from trainers.pytorch.devices import breaks, collect, forget, tidy, within
from trainers.pytorch.state import Precision

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


# ---- precision


@pytest.fixture
def old_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that has bf16 in software alone."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")


def test_a_precision_that_the_gpu_lacks_is_refused(old_gpu: None) -> None:
    Precision("fp32").check(GPU)
    Precision("bf16").check(CPU)
    with refuses(
        ConfigurationError, field=("precision", "Tesla T4"), value="bf16", remedy=("fp32", "accelerator_type")
    ):
        Precision("bf16").check(GPU)


def test_it_is_refused_before_rows_are_read(old_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import trainers.pytorch.program as module

    monkeypatch.setattr(module, "device_of", lambda settings, context: GPU)
    with refuses(ConfigurationError, field=("precision", "Tesla T4"), value="bf16", remedy="fp32"):
        serve_alone(program(len, precision="bf16")())


def test_a_newer_gpu_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    Precision("bf16").check(GPU)


# ---- errors that break a worker


def assertion() -> None:
    raise torch.AcceleratorError("CUDA error: device-side assert triggered")


@pytest.mark.parametrize(
    ("error", "answers", "broken"),
    [
        (torch.AcceleratorError("CUDA error: device-side assert triggered"), assertion, True),
        (IndexError("an index of the user's"), lambda: None, False),
        (IndexError("raised while the GPU had not come to the assertion yet"), assertion, True),
        (torch.OutOfMemoryError("CUDA out of memory"), assertion, False),  # It is not even asked.
        (torch.AcceleratorError("CUDA error: out of memory"), lambda: None, False),
    ],
)
def test_a_device_that_does_not_answer_any_more_is_broken(
    error: Exception, answers: object, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: (asked.append(device), answers()))  # type: ignore[operator]
    assert breaks(error, GPU) is broken
    assert set(asked) <= {GPU}
    assert not breaks(error, CPU)


def test_a_call_that_does_not_come_back_is_not_waited_for() -> None:
    began, never = time.monotonic(), threading.Event()
    assert not within(0.05, partial(never.wait, 30))
    assert time.monotonic() - began < 10
    never.set()
    assert within(10, lambda: None)
    assert not within(10, assertion)


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


def fails_on_rank_1(context) -> None:
    """As under NCCL, where the others are told by the meeting."""
    context.sum(1.0)
    if context.rank == 1:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
    context.sum(1.0)


def pretend() -> None:
    import trainers.pytorch.program as module

    module.breaks = lambda error, device: isinstance(error, torch.AcceleratorError)


def honest() -> None:
    import trainers.pytorch.program as module

    module.breaks = breaks


@pytest.mark.process
def test_all_workers_have_the_reason_of_the_one_that_broke(gang, tmp_path: Path) -> None:
    try:
        errors = only_errors(gang.run(program(fails_on_rank_1), assignment(tmp_path, stop=1), before=pretend))
    finally:
        gang.run(program(fails_on_rank_1), before=honest)
    assert [isinstance(error, BrokenWorkerError) for error in errors] == [False, True, False]
    assert all("an illegal memory access was encountered" in str(error) for error in errors)
    assert all(isinstance(error, TrialError) for error in errors)


# ---- memory


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


def train_and_look_back(context) -> None:
    from tests.support import kept_tensors  # A function that is sent has no globals of its module's.

    gc.collect()
    left = sum(ref() is not None for ref in kept_tensors.KEPT)
    model = context.prepare_model(nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = context.prepare_data("train", labels=torch.int64)
    for _ in context.epochs():
        for features, labels in batches:
            context.step(nn.functional.cross_entropy(model(features), labels), optimizer)
        for p in model.parameters():
            kept_tensors.KEPT += [weakref.ref(each) for each in (p, p.grad, p.grad.untyped_storage())]
        context.report({"train:left": float(left)}, checkpoint={"model": model.state_dict()})
        if context.hyperparameters.get("fails"):
            raise ValueError("after its first epoch")


@pytest.mark.process
def test_trials_on_several_workers_leave_no_model_and_no_gradients_behind(gang, tmp_path: Path) -> None:
    words = {"per_worker_batch_size": 8}
    work = [assignment(tmp_path, stop=1, name=f"trial-{number}", **words) for number in range(3)]
    work.insert(1, assignment(tmp_path, stop=2, name="bad", fails=True, **words))
    for rank, answers in enumerate(gang.run(program(train_and_look_back), *work)):
        assert "after its first epoch" in str(answers.pop(1))
        left = [answer.reports[0].metrics["train:left"] for answer in answers]
        assert left == [0.0, 0.0, 0.0], rank


def test_a_gpu_is_tidied_after_each_trial_and_a_broken_one_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(devices.memory.gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("empty"))
    tidy(CPU)
    assert calls == []
    tidy(GPU)
    assert calls == ["collect", "empty"]
    monkeypatch.setattr(torch.cuda, "empty_cache", assertion)
    tidy(GPU)
