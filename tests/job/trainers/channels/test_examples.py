"""Examples as channels: what is in them, what is said of them, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.examples import KINDS, ROWS
from trainers import Channel, Examples
from trainers.channels import OpenedExamples


def opened(examples: Examples) -> OpenedExamples:
    source = Channel.of(examples, name="train").source
    assert isinstance(source, OpenedExamples)
    return source


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_opens_the_same_again(tmp_path: Path, kind: str) -> None:
    source = opened(KINDS[kind](tmp_path))
    about = json.loads(json.dumps({**source.describe(), "open": source.reopened_with()}))
    again = opened(Examples.of(about["open"]["examples"], about["open"]["arguments"]))
    assert again.fingerprint() == source.fingerprint()
    assert again.describe() == source.describe()
    assert source.rows == ROWS
    assert all(map(os.path.exists, source.samples()))
    assert bool(source.samples()) == (kind not in ("named", "iterable"))
