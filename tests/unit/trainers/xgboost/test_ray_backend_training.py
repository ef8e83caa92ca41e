"""An interrupted training that xgboost_ray takes for a finished one is begun again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.support.refusals import refuses
from trainers.errors import GangError
from trainers.xgboost.ray_backend.training import TRIES, unless_interrupted


def ends(*raised: BaseException | None) -> Iterator[str]:
    for error in raised:
        if error is not None:
            raise error
    yield "model"


@pytest.fixture
def nothing_to_collect() -> Iterator[None]:
    """The objects of earlier tests are not looked through at each new beginning."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_to_collect")
def test_it_is_begun_again_and_again_for_a_while() -> None:
    came = iter([KeyError("total_n"), KeyError("total_n"), None])
    assert unless_interrupted(lambda: next(ends(next(came)))) == "model"
    with refuses(GangError, field="xgboost_ray", value=TRIES):
        unless_interrupted(lambda: next(ends(KeyError("total_n"))))


def test_any_other_error_is_its_own() -> None:
    for error in (KeyError("other"), ValueError("total_n")):
        with pytest.raises(type(error)):
            unless_interrupted(lambda error=error: next(ends(error)))
