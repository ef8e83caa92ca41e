"""Columns that give the label away are found, and those that are only good are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from tests.support.properties import examples
from trainers.data_check.giveaways import OF_CLASSES, OF_NUMBERS, Sample, _places, giveaways, told_by

Numbers = NDArray[np.float64]
RANDOM = np.random.default_rng(11)
ROWS = 4000
CLASSES = RANDOM.choice(3, ROWS, p=[0.6, 0.37, 0.03])
RARE = (RANDOM.random(ROWS) < 0.01).astype(np.int64)
NOISE = RANDOM.normal(size=ROWS)
NUMBERS = RANDOM.normal(size=ROWS)


@pytest.mark.parametrize("label", [CLASSES, RARE], ids=["three classes", "a rare class"])
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda label: label.astype(np.float64), id="a copy"),
        pytest.param(lambda label: label + NOISE * 0.01, id="a copy with noise"),
        pytest.param(lambda label: np.where(label == label.max(), NOISE, np.nan + NOISE), id="missing but for one"),
        pytest.param(lambda label: np.exp(-3.0 * label), id="another scale"),
    ],
)
def test_a_column_that_tells_a_class_is_found(label: NDArray[np.int64], made: Callable[..., Numbers]) -> None:
    told = (label == label.max()).astype(np.int64) if np.isnan(made(label)).any() else label
    assert told_by(made(label), told, classes=True) > OF_CLASSES


@pytest.mark.parametrize(
    "values",
    [NOISE, CLASSES + NOISE, np.arange(ROWS, dtype=np.float64), np.full(ROWS, np.nan), np.ones(ROWS)],
    ids=["noise", "a good column", "row numbers", "nothing", "one value"],
)
def test_a_column_that_tells_less_is_not(values: Numbers) -> None:
    assert told_by(values, CLASSES, classes=True) < 0.6
    assert told_by(values, NUMBERS.argsort().argsort() / ROWS, classes=False) < 0.1


def test_ranks_of_numbers_are_told_by_any_function_of_them() -> None:
    ranks = NUMBERS.argsort().argsort() / ROWS
    for values in (NUMBERS, np.exp(3 * NUMBERS), -NUMBERS + 0.01 * NOISE):
        assert told_by(values, ranks, classes=False) > OF_NUMBERS
    assert 0.3 < told_by(NUMBERS + NOISE, ranks, classes=False) < OF_NUMBERS


@settings(max_examples=examples(30))
@given(
    st.lists(st.sampled_from([0.0, 1.0, float("nan"), 7.0]), min_size=4, max_size=40),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_a_share_is_one(values: list[float], classes: int, of_classes: bool, apart: bool) -> None:
    label = np.arange(len(values)) % classes
    share = told_by(np.array(values), label if of_classes else label / 4, classes=of_classes, apart=apart)
    assert 0 <= share <= 1


def test_categories_are_told_apart_and_named() -> None:
    codes = RANDOM.permutation(200)[np.arange(ROWS) % 200]
    frame = pd.DataFrame({"noise": NOISE, "shop": pd.Categorical.from_codes(codes, [f"s{at}" for at in range(200)])})
    sample = Sample()
    sample.add(frame, (codes % 2).astype(np.float32))
    (found,) = giveaways(sample, ("noise", "shop"), classes=True)
    assert found.column == "shop"
    assert found.share > OF_CLASSES


def test_without_two_labels_there_is_nothing_to_give_away() -> None:
    sample = Sample()
    sample.add(np.zeros((10, 1), np.float32), np.ones(10, np.float32))
    assert giveaways(sample, None, classes=True) == ()


@pytest.mark.parametrize("rows", [1, 2, 7, 64, 65, 1000, 4001])
def test_bins_lie_between_the_quantiles_that_numpy_has(rows: int) -> None:
    values = np.sort(np.random.default_rng(rows).normal(size=rows))
    for bins in (8, 64):
        expected = np.quantile(values, np.linspace(0, 1, bins + 1), method="higher")
        assert (values[_places(rows, bins)] == expected).all()
