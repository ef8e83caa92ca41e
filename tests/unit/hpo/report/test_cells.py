"""How values stand in a table."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.report import Measured
from hpo.report.page.cells import NOTHING, cell, decimal, with_error


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, None, "0"),
        (0.123456, None, "0.1235"),
        (0.00001234567, None, "1.235e-5"),
        (12.3456, None, "12.35"),
        (1234.56, None, "1,235"),
        (9_999_999.0, None, "1e7"),
        (-0.5, None, "-0.5"),
        (0.5, 4, "0.5000"),
        (1234.5, 1, "1,234.5"),
        (math.inf, 2, "∞"),
        (-math.inf, None, "-∞"),
        (math.nan, None, "NaN"),
    ],
)
def test_a_number_has_as_many_digits_as_say_something(value: float, digits: int | None, text: str) -> None:
    assert decimal(value, digits) == text


@pytest.mark.parametrize(
    ("value", "error", "digits", "text"),
    [
        (0.78591, 0.01809, None, "0.786 ± 0.018"),
        (0.78591, 0.01809, 4, "0.7859 ± 0.0181"),
        (0.78591, 0.00012, 4, "0.78591 ± 0.00012"),
        (123.4, 56.0, None, "123 ± 56"),
        (0.5, None, 2, "0.50"),
        (0.5, 0.0, 2, "0.50"),
        (0.5, math.nan, 2, "0.50"),
    ],
)
def test_an_error_says_how_many_digits_its_number_has(
    value: float, error: float | None, digits: int | None, text: str
) -> None:
    assert with_error(value, error, digits) == text


@pytest.mark.parametrize(
    ("value", "text", "number"),
    [
        (None, NOTHING, ""),
        (True, "yes", None),
        ("1", "1", None),
        (12345, "12,345", "12345"),
        (np.int64(3), "3", "3"),
        (np.float32(0.5), "0.5", "0.5"),
        (math.nan, "NaN", ""),
        ([1, {"a": None}], '[1, {"a": null}]', None),
        (datetime(2026, 1, 31, 12, 5, tzinfo=UTC), "2026-01-31 12:05:00 UTC", None),
        (Measured(None), NOTHING, ""),
        (Measured(0.25, signed=True), "+0.25", "0.25"),
        (Measured(-0.25, signed=True), "-0.25", "-0.25"),
    ],
)
def test_a_cell_has_its_text_and_what_it_is_sorted_by(value: Any, text: str, number: str | None) -> None:
    found = cell(value)
    assert (found.text, found.number) == (text, number)


@given(st.floats(allow_nan=False, allow_infinity=False), st.none() | st.integers(0, 6))
def test_whatever_is_shown_a_number_is_sorted_by_all_of_it(value: float, digits: int | None) -> None:
    for given_as in (value, Measured(value, 0.1)):
        number = cell(given_as, digits).number
        assert number is not None
        assert float(number) == value
