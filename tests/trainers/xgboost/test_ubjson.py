"""Whether bytes are one whole UBJSON value: what XGBoost writes is, and no beginning of it."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost
from hypothesis import given, strategies as st

from trainers.xgboost.ubjson import flaw


@pytest.fixture(scope="module")
def models() -> list[bytes]:
    """A tree model with a category and one with several targets, a forest of none, and a linear one."""
    random = np.random.default_rng(0)
    rows, labels = random.normal(size=(200, 4)), random.integers(0, 3, 200)
    rows[:, 3] = random.integers(0, 5, 200)
    matrix = xgboost.DMatrix(rows, labels, feature_types=["q", "q", "q", "c"], feature_names=list("abcd"))
    plain = xgboost.DMatrix(rows, labels)
    kinds = [
        ({"objective": "multi:softprob", "num_class": 3, "max_depth": 4}, matrix, 3),
        ({"objective": "reg:squarederror", "booster": "dart"}, plain, 2),
        ({"booster": "gblinear"}, plain, 2),
        ({}, plain, 0),
    ]
    return [bytes(xgboost.train(how, rows, rounds).save_raw("ubj")) for how, rows, rounds in kinds]


def test_what_xgboost_writes_is_whole(models: list[bytes]) -> None:
    assert [flaw(model) for model in models] == [""] * len(models)


def test_no_beginning_of_it_is_whole(models: list[bytes]) -> None:
    for model in models:
        ends = {*range(0, len(model), 7), *range(len(model) - 50, len(model))}
        assert all(flaw(model[:end]) for end in ends)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"not a model", "it does not begin as UBJSON"),
        (b"\0" * 100, "it does not begin as UBJSON"),
        (b"{", "it ends in the middle, after 1 bytes"),
        (b"{}{}", "it goes on behind its end, for 2 bytes"),
        (b"{i\x01a?}", "it holds no UBJSON at byte 4"),
        (b"{i\xffa", "it holds a length below zero at byte 1"),
        (b"{" + b"i\x01a{" * 100, "it nests deeper than 64 levels"),
        (b"{i\x01aSL\x7f" + b"\xff" * 7, "it ends in the middle"),
    ],
)
def test_each_flaw_is_told(data: bytes, why: str) -> None:
    assert flaw(data).startswith(why)


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    assert isinstance(flaw(data), str)
    assert isinstance(flaw(b"{" + data), str)
