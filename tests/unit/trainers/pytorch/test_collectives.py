"""Errors of collectives that a function makes itself: they name the ranks and what they wait for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.refusals import mentions
from trainers.errors import TrialError
from trainers.pytorch.gradients.peers import ProcessGroup

GLOO = "[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 40000ms for recv operation"


class Store(dict[str, bytes]):
    """What ranks have said in their key-value store."""

    def check(self, keys: list[str]) -> bool:
        return all(key in self for key in keys)


def group(**said: str) -> Any:
    """Rank 0 of two, at its fourth meeting."""
    made = ProcessGroup.__new__(ProcessGroup)
    made.rank, made.world_size, made._meetings = 0, 2, 3
    made._meeting = Store({name.replace("_", "/").lstrip("/"): text.encode() for name, text in said.items()})  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("text", [GLOO, "Connection closed by peer [10.0.0.7]:4711"])
def test_a_rank_with_more_steps_names_the_one_that_has_gone_on_to_its_report(text: str) -> None:
    error = group(_3_1="the report of epoch 1\n")._placed(RuntimeError(text))
    assert isinstance(error, TrialError)
    mentions(str(error), "rank 0", "rank 1", "the report of epoch 1", text.partition("] ")[2] or text, "prepare_data")
    mentions(str(group()._placed(RuntimeError(text))), "rank 0", "prepare_data")


def test_other_errors_stay_as_they_are() -> None:
    for error in (ValueError("no such column"), TrialError("rank 0 waited in gloo")):
        assert group(_3_1="the report of epoch 1")._placed(error) is error
