"""What a function hands to `report` is read back as it was, or refused where it is handed in."""

from __future__ import annotations

import enum
from collections import defaultdict, namedtuple

import numpy as np
import pytest
from ray.train import ScalingConfig
from torch import nn

from tests.support.networks import assignment, data
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from trainers import TorchTrainer, TrialError
from trainers.channels import Channel

Point = namedtuple("Point", ["x", "y"])


class Phase(enum.IntEnum):
    WARM = 1


class Text(str):
    __slots__ = ()


def alone(function, *assignments):
    trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0))
    return serve_alone(trainer.program({"train": Channel.of(data(), name="train").place(0)}), *assignments)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (defaultdict(list, a=[1]), ("collections.defaultdict", "dict(")),
        (Point(1, 2), ("Point", "tuple(")),
        (Phase.WARM, ("Phase", "int(")),
        (Text("a"), ("Text", "str(")),
        (np.zeros(3), ("numpy.ndarray", "torch.from_numpy")),
        (np.datetime64("2020-01-01"), ("numpy.datetime64", "tensors", "numbers")),
        (np.longdouble(1), ("numpy.longdouble", "numbers")),
        (b"", ("b''", "None", "bytearray()")),
        (frozenset([1]), ("frozenset", "tensors")),
        (nn.Linear(1, 1), ("torch.nn.modules.linear.Linear", "tensors", "state_dict()")),
        ({(1, 2): 3}, ("(1, 2)", "text", "numbers")),
        ({Phase.WARM: 3}, ("WARM", "text", "numbers")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_could_not_be_read_back_is_refused_at_its_report(tmp_path, given, names):
    reports = []

    def train(context) -> None:
        for epoch in context.epochs():
            context.report({}, checkpoint={"a": [given]})
            reports.append(epoch)

    [error] = alone(train, assignment(tmp_path, stop=5))
    assert isinstance(error, TrialError), error
    mentions(str(error), "report", "checkpoint['a'][0]", *names)
    assert reports == []
