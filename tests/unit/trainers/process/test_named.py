"""Names of code: by them another process finds the same, or an error says why it does not."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.refusals import refuses
from trainers.errors import ConfigurationError
from trainers.process import load, name_of


class Called:
    def __call__(self) -> None:
        pass


@pytest.mark.parametrize("thing", [name_of, Called, Called.__call__, partial])
def test_what_has_a_name_is_found_by_it(thing: object) -> None:
    assert load(name_of(thing), "objective_function", "function") is thing


@pytest.mark.parametrize("thing", [partial(print), Called(), lambda: None])
def test_what_has_none_is_not_taken_for_its_class(thing: object) -> None:
    with refuses(ConfigurationError, field="objective_function", value=name_of(thing), remedy="module"):
        load(name_of(thing), "objective_function", "function")
