"""What becomes of a worker's device between trials: memory, precision, and errors that break it. No GPU is needed."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest
import torch

from tests.support.allreduce import program
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses
from trainers import ConfigurationError
from trainers.pytorch import devices
from trainers.pytorch.devices import breaks, tidy, within
from trainers.pytorch.state import Precision

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


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
