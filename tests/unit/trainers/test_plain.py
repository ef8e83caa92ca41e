"""Plain Python values: what becomes one, and what is refused, by its path."""

from __future__ import annotations

import enum
import json
import math
import os
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from tests.support.properties import examples
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError
from trainers.plain import plain, plain_scalar

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
FLOATS = st.floats(width=32, allow_nan=False)
WHOLE = st.integers(-(2**31), 2**31 - 1)

Pair = tuple[Any, Any]
"""A value as a user gives it, and the plain one."""


class Colour(enum.StrEnum):
    RED = "red"


class OwnText(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "another"


def scalars() -> st.SearchStrategy[Pair]:
    numbers = st.one_of(
        WHOLE.flatmap(lambda n: st.sampled_from([n, np.int64(n), np.array(n), np.array([n]), torch.tensor([[n]])])),
        FLOATS.flatmap(lambda x: st.sampled_from([x, np.float32(x), np.float64(x), np.array(x), torch.tensor(x)])),
        st.booleans().flatmap(lambda b: st.sampled_from([b, np.bool_(b), np.array(b), torch.tensor(b)])),
    )
    texts = TEXT.flatmap(lambda text: st.sampled_from([text, OwnText(text)]))
    paths = st.sampled_from([PurePosixPath("/a/b"), Path("a")])
    return st.one_of(
        numbers.map(lambda value: (value, value.item() if hasattr(value, "item") else value)),
        texts.map(lambda text: (text, "".join(text))),
        st.just((np.str_("text"), "text")),
        paths.map(lambda path: (path, os.fspath(path))),
        st.just((None, None)),
    )


def nested() -> st.SearchStrategy[Pair]:
    keys = TEXT.flatmap(lambda text: st.sampled_from([text, OwnText(text)]))

    def listed(pairs: list[Pair]) -> st.SearchStrategy[Pair]:
        given, expected = [each for each, _ in pairs], [own for _, own in pairs]
        return st.sampled_from([(given, expected), (tuple(given), expected)])

    def named(pairs: dict[str, Pair]) -> Pair:
        return {name: each for name, (each, _) in pairs.items()}, {
            "".join(name): own for name, (_, own) in pairs.items()
        }

    return st.recursive(
        scalars(),
        lambda inner: st.lists(inner, max_size=3).flatmap(listed) | st.dictionaries(keys, inner, max_size=3).map(named),
        max_leaves=8,
    )


def types(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: types(each) for name, each in value.items()}, {type(name) for name in value}
    return [types(each) for each in value] if isinstance(value, list) else type(value)


@settings(max_examples=examples(100), deadline=None)
@given(nested())
def test_nested_values_become_python_s_own_and_json_keeps_them(pair: Pair) -> None:
    value, expected = pair
    made = plain(value, "hyperparameters")
    assert made == expected
    assert types(made) == types(expected)
    assert json.loads(json.dumps(made)) == made
    assert types(plain(made, "hyperparameters")) == types(made)


def test_kinds_that_are_rare() -> None:
    given = {"half": np.float16(0.5), "long": np.longdouble(1), "named": Colour.RED, "range": range(2), "nan": np.nan}
    made = plain(given, "hyperparameters")
    assert math.isnan(made.pop("nan"))
    assert made == {"half": 0.5, "long": 1.0, "named": "red", "range": [0, 1]}
    assert types(made) == types({"half": 0.5, "long": 1.0, "named": "red", "range": [0, 1]})


def test_the_copy_is_independent() -> None:
    inner = [1]
    made = plain({"a": inner}, "hyperparameters")
    inner.append(2)
    assert made == {"a": [1]}


def test_what_has_no_plain_form_is_refused_by_its_path() -> None:
    endless: list[Any] = []
    endless.append(endless)
    cases: list[tuple[Any, tuple[object, ...]]] = [
        (np.array([1, 2]), ("int64", (2,), "tolist()")),
        (np.zeros((0,)), ("float64", (0,), "tolist()")),
        (np.zeros((2, 2)), ("float64", (2, 2), "tolist()")),
        (torch.ones(3), ("Tensor", (3,), "tolist()")),
        (torch.ones(1, device="meta"), ("Tensor", (1,), "tolist()")),
        (np.ma.masked, ("MaskedConstant", "number")),
        (np.datetime64("2026-01-01"), ("datetime64", "string")),
        (np.timedelta64(5, "ns"), ("timedelta64", "string")),
        (date(2026, 1, 1), ("date", "string")),
        (b"x", (b"x", "bytes", "string")),
        (1j, (1j, "complex", "number")),
        (print, (print, "string")),
        ({1, 2}, ({1, 2}, "set", "list")),
        ({5: 1}, (5, "int", "strings")),
        ({math.nan: 1}, ("nan", "float", "strings")),
        ({(1, 2): 1}, ((1, 2), "tuple", "strings")),
        ("\ud800", ("UTF-8",)),
        ("\0", ("NUL",)),
        (10**5000, ("16,610", "14,000")),
        (endless, ("100", "fewer")),
    ]
    refuses_each(
        [(lambda value=value: plain({"a": [0, {"b": value}]}, "hyperparameters"), names) for value, names in cases],
        ConfigurationError,
    )


def test_a_path_leads_to_the_value() -> None:
    with refuses(ConfigurationError, field="hyperparameters['a']['b'][1]", value=print, remedy="string"):
        plain({"a": {np.str_("b"): (1, print)}}, "hyperparameters")


@pytest.mark.parametrize("value", [object(), [np.int64(1)], {"a": 1}, np.array([1, 2]), b"x", None])
def test_a_scalar_s_caller_checks_everything_else(value: Any) -> None:
    assert plain_scalar(value) is value
