"""What goes wrong where workers compute together: every rank says the same, and nobody waits for ever."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.support.allreduce import alone, program, train_with_everything
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from trainers import TrialError
from trainers.errors import DataError


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (lambda context: None, ("rank 0", "0", "2", "context.epochs()", "report()", "final=True")),
        (lambda context: list(context.epochs()), ("rank 0", "epoch 0", "report()")),
        (lambda context: [context.report({}) for _ in range(2)], ("epoch 0", "report()", "epochs()")),
        (lambda context: context.report({}, final=True), ("epoch 0", "checkpoint", "None", "model")),
        (
            lambda context: next(context.epochs()) or context.report({}, checkpoint={}),
            ("1", "2", "context.epochs()", "report()", "final=True"),
        ),
        (lambda context: context.report({"a:b": "good"}), ("metric", "a:b", "good", "number")),
        (lambda context: context.report({"a:b": 10**400}), ("metric", "a:b", "float")),
        (lambda context: context.shard("trian"), ("channel", "trian", "train", "fit()")),
        (lambda context: context.prepare_data("train"), ("per_worker_batch_size", "global_batch_size")),
        (
            lambda context: [context.report({}, checkpoint={"model": nn.Linear(1, 1)}) for _ in context.epochs()],
            ("checkpoint['model']", "torch.nn.modules.linear.Linear", "tensors"),
        ),
    ],
)
def test_a_wrong_function_is_told(tmp_path, body, names):
    [error] = alone(body, 96, assignment(tmp_path))
    assert isinstance(error, TrialError), error
    mentions(str(error), *names)


def test_a_function_that_never_reports_is_ended_by_a_deadline(tmp_path):
    def train(context) -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    [error] = serve_alone(program(train, timeout=0.5)(), assignment(tmp_path))
    mentions(str(error), "0.625 s", "report", "trial", "0")


def resume_from(tmp_path, function, raw: bytes) -> Exception:
    (tmp_path / "trial").mkdir(exist_ok=True)
    (tmp_path / "trial" / "1.pt").write_bytes(raw)
    [error] = alone(function, 96, assignment(tmp_path, start=1, per_worker_batch_size=8))
    assert isinstance(error, Exception)
    return error


def test_a_checkpoint_that_is_none_is_named(tmp_path):
    alone(train_with_everything, 96, assignment(tmp_path, stop=1, per_worker_batch_size=8))
    whole = (tmp_path / "trial" / "1.pt").read_bytes()
    for raw in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1], b"{}", whole[::-1]):
        error = resume_from(tmp_path, train_with_everything, raw)
        assert isinstance(error, DataError), error
        mentions(str(error), "checkpoint", str(tmp_path / "trial" / "1.pt"))


def test_a_checkpoint_of_another_model_is_named(tmp_path):
    def train(context) -> None:
        model = context.prepare_model(nn.Linear(6, 9))
        model.load_state_dict(context.checkpoint["model"])

    alone(train_with_everything, 96, assignment(tmp_path, stop=1, per_worker_batch_size=8))
    error = resume_from(tmp_path, train, (tmp_path / "trial" / "1.pt").read_bytes())
    mentions(str(error), str(tmp_path / "trial" / "1.pt"), "model", "weight", "0.weight", "hyperparameters")


def test_a_loader_of_another_batch_size_is_refused(tmp_path):
    def train(context) -> None:
        context.prepare_data(DataLoader(TensorDataset(torch.arange(50)), batch_size=4))

    [error] = alone(train, 96, assignment(tmp_path, per_worker_batch_size=8))
    mentions(str(error), "DataLoader", "batch_size", "4", "8", "context.batch.per_worker_batch_size")
