"""Whatever the Python API is given, the outcome is a valid plan, or one of our own errors."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from tests.support.hpo.search.fuzz import ANYTHING, ARRAYS, look_and_read, quick
from trainers.channels import Channel


@quick
@given(ARRAYS | ANYTHING, ARRAYS | ANYTHING)
def test_pairs(features: Any, labels: Any) -> None:
    look_and_read(lambda: Channel.of((features, labels), name="train"))
