"""What becomes of a worker's device between trials: memory, precision, and errors that break it. No GPU is needed."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import torch
from torch import nn

from tests.support.allreduce import only_errors, program
from tests.support.networks import assignment
from trainers import TrialError
from trainers.errors import BrokenWorkerError
from trainers.pytorch.devices import breaks


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


def test_all_workers_have_the_reason_of_the_one_that_broke(gang, tmp_path: Path) -> None:
    try:
        errors = only_errors(gang.run(program(fails_on_rank_1), assignment(tmp_path, stop=1), before=pretend))
    finally:
        gang.run(program(fails_on_rank_1), before=honest)
    assert [isinstance(error, BrokenWorkerError) for error in errors] == [False, True, False]
    assert all("an illegal memory access was encountered" in str(error) for error in errors)
    assert all(isinstance(error, TrialError) for error in errors)


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


def test_trials_on_several_workers_leave_no_model_and_no_gradients_behind(gang, tmp_path: Path) -> None:
    words = {"per_worker_batch_size": 8}
    work = [assignment(tmp_path, stop=1, name=f"trial-{number}", **words) for number in range(3)]
    work.insert(1, assignment(tmp_path, stop=2, name="bad", fails=True, **words))
    for rank, answers in enumerate(gang.run(program(train_and_look_back), *work)):
        assert "after its first epoch" in str(answers.pop(1))
        left = [answer.reports[0].metrics["train:left"] for answer in answers]
        assert left == [0.0, 0.0, 0.0], rank
