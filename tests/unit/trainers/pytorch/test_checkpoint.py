"""What a function hands to `report` is read back as it was, or refused where it is handed in."""

from __future__ import annotations

import io
from collections import Counter, OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from ray.train import ScalingConfig
from torch import nn

from tests.support.networks import assignment, data, state
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses
from trainers import TorchTrainer, TrialError
from trainers.channels import Channel
from trainers.pytorch.plain import plain
from trainers.pytorch.state.checkpoint import TorchCheckpoint


def alone(function, *assignments):
    trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0))
    return serve_alone(trainer.program({"train": Channel.of(data(), name="train").place(0)}), *assignments)


def read_back(value: Any) -> Any:
    raw = TorchCheckpoint(step=1, state={"it": value}, random=(), updates=0, positions=()).to_bytes()
    return torch.load(io.BytesIO(raw), weights_only=True)["state"]["it"]


NUMPYS = [
    (np.float64(0.5), 0.5),
    (np.float32(0.5), 0.5),
    (np.float16(0.5), 0.5),
    (np.int64(7), 7),
    (np.uint8(7), 7),
    (np.bool_(True), True),
    (np.complex128(1j), 1j),
    (np.str_("a"), "a"),
    (np.bytes_(b"a"), b"a"),
]


@pytest.mark.parametrize(("given", "expected"), NUMPYS, ids=lambda value: type(value).__name__)
def test_a_trial_goes_on_from_numpys_numbers(tmp_path, given, expected):
    def train(context) -> None:
        before = context.checkpoint
        assert before is None or before["nested"] == [{"it": (expected,)}]
        for _ in context.epochs():
            context.report({}, checkpoint={"it": given, "nested": [{"it": (given,)}]})

    first, second = alone(train, assignment(tmp_path, stop=1), assignment(tmp_path, start=1, stop=2))
    for segment in (first, second):
        assert state(segment)["it"] == expected
        assert type(state(segment)["it"]) is type(expected)


def test_what_pytorch_makes_is_taken_as_it_is():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=np.float64(0.1))
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 1, 3])
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    whole = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "parameters": list(model.parameters()),
        "others": {torch.float32, torch.Size([2, 3]), torch.device("cpu"), None},
        "bytes": bytearray(b"a"),
    }
    found = read_back(plain(whole, "checkpoint"))
    assert type(found["model"]) is OrderedDict
    assert found["model"]._metadata == model.state_dict()._metadata
    assert type(found["scheduler"]["milestones"]) is Counter
    assert type(found["optimizer"]["param_groups"][0]["lr"]) is float
    assert {**found, "model": None, "optimizer": None, "parameters": None}.keys() == whole.keys()
    assert found["others"] == whole["others"]
    assert plain(whole["model"], "checkpoint") is whole["model"]


def test_an_attribute_of_a_tensor_is_read_back_or_refused():
    tensor = torch.ones(2)
    tensor.kind = "bias"
    assert read_back(plain(tensor, "checkpoint")).kind == "bias"
    tensor.kind = np.float64(1)
    with refuses(TrialError, field="checkpoint.kind", value="np.float64(1.0)", remedy="Python"):
        plain(tensor, "checkpoint")


NUMPY = st.one_of(
    st.floats(allow_nan=False).map(np.float64),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.booleans().map(np.bool_),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0")).map(np.str_),
)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(min_size=1),
    NUMPY,
)
KEYS = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans(), NUMPY)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(KEYS, inner),
        st.dictionaries(KEYS, inner).map(OrderedDict),
        st.sets(st.one_of(st.integers(), NUMPY)),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_is_taken_reads_back_equal(value):
    assert read_back(plain(value, "checkpoint")) == value
